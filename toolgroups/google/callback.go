package google

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"oneclaw/internal/runes"
)

// Paths of [Google.Pages] under the public address.
const (
	// StartPath is where a link leads: it says whom the account is for.
	StartPath = "/google/connect"
	// CallbackPath is where Google sends the browser after the consent.
	CallbackPath = "/google/callback"
)

// signInPage is what a browser shows during a sign-in.
var signInPage = template.Must(template.New("sign-in").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Google account</title></head>
<body style="font-family:system-ui,sans-serif;max-width:32em;margin:15vh auto;padding:0 1em;line-height:1.5">
<h1>{{.Title}}</h1>{{with .Text}}<p>{{.}}</p>{{end}}
{{with .User}}<p>The bot will use the account for <b><bdi>{{$.Name}}</bdi></b> (<bdi>{{.}}</bdi>), in the direct chat <bdi>{{$.Chat}}</bdi>.</p>{{end}}
{{with .Google}}<p>Is that you, and have you asked for this link yourself? Then go on. If somebody sent you this link, close the page:
they would read your mail and files.</p>
<p><a href="{{.}}" rel="noreferrer" style="display:inline-block;padding:.6em 1.2em;border-radius:.4em;background:#0b57d0;color:#fff;text-decoration:none">Go on to Google</a></p>{{end}}
{{with .Proof}}<p>Is that you? Then send this code to the bot, in the chat that the link came from:</p>
<p style="font-size:2em;letter-spacing:.1em"><code>{{.}}</code></p>
<p>Give the code and the address of this page to nobody. If somebody sent you the link, close the page: nothing is connected without the code.</p>{{end}}
</body></html>
`))

// view fills a signInPage.
type view struct {
	Title, Text string
	// User, Name and Chat say whom the account is for.
	User, Name, Chat string
	// Google is the address of the consent page, Proof what the user has to send.
	Google, Proof string
}

// of says whom a sign-in is for.
func (v view) of(user string, p pending) view {
	v.User, v.Name, v.Chat = user, plainLine(p.Name), p.Chat
	if v.Name == "" {
		v.Name = user
	}
	return v
}

// plainLine is the beginning of a name, without what is not seen or changes the order of what is.
func plainLine(name string) string {
	shown, _ := runes.Split(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name), 64)
	return strings.TrimSpace(shown)
}

// Pages are what browsers are shown under [StartPath] and [CallbackPath].
func (g *Google) Pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+StartPath, func(w http.ResponseWriter, r *http.Request) {
		user, p, err := g.started(r)
		g.show(w, user, view{Title: "Connect a Google account", Google: g.consentURL(p)}.of(user, p), err)
	})
	mux.HandleFunc("GET "+CallbackPath, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet { // a HEAD would use the code up and show nothing
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		user, p, err := g.arrived(r)
		g.show(w, user, view{Title: "One more step", Text: "Nothing is connected yet.", Proof: p.Proof}.of(user, p), err)
	})
	return mux
}

// show writes a page; an error takes its place.
func (g *Google) show(w http.ResponseWriter, user string, v view, err error) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	if err != nil {
		text, other := told(err)
		if other != nil {
			g.cfg.Logger.Error("google sign-in not finished", "user", user, "err", err)
			text = "Something went wrong here. Send /connect google again."
		}
		v = view{Title: "Not connected", Text: text}
		w.WriteHeader(http.StatusBadRequest)
	}
	if err := signInPage.Execute(w, v); err != nil {
		g.cfg.Logger.Debug("sign-in page not sent", "err", err)
	}
}

// started finds the sign-in that a link leads to.
func (g *Google) started(r *http.Request) (string, pending, error) {
	state := r.URL.Query().Get("state")
	user, ok := g.userOf(state)
	if !ok {
		return "", pending{}, errLink
	}
	p, _, err := g.find(r.Context(), user, state)
	if err == nil && p.Code != "" {
		err = errLink
	}
	return user, p, err
}

// arrived keeps the code of the sign-in that a browser comes back from.
func (g *Google) arrived(r *http.Request) (string, pending, error) {
	q := r.URL.Query()
	user, ok := g.userOf(q.Get("state"))
	if !ok {
		return "", pending{}, errLink
	}
	code := q.Get("code")
	if q.Get("error") != "" {
		code = ""
	}
	p, err := g.arrive(r.Context(), user, q.Get("state"), code)
	return user, p, err
}

// loginTime is how long [Google.Login] waits for the browser.
const loginTime = 2 * time.Minute

// Login connects the account of a user from the machine that the bot runs on. show
// gets the address that the operator opens in a browser there. services are those
// to ask for, none means all.
func (g *Google) Login(ctx context.Context, user string, services []string, show func(link string)) (email string, err error) {
	if g.cfg.ClientID == "" {
		return "", fmt.Errorf("google: %w", errNoOAuth)
	}
	scopes, err := g.loginScopes(ctx, user, services)
	if err != nil {
		return "", fmt.Errorf("google: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("google: listen for the browser: %w", err)
	}
	redirect := "http://" + listener.Addr().String() + CallbackPath
	p, err := g.begin(ctx, user, pending{Redirect: redirect, Scopes: scopes})
	if err != nil {
		return "", errors.Join(err, listener.Close())
	}
	ended := make(chan error, 1)
	mux := http.NewServeMux()
	mux.HandleFunc(CallbackPath, func(w http.ResponseWriter, r *http.Request) {
		err := g.served(w, r, p.State)
		if errors.Is(err, errLink) {
			return // Not what was waited for.
		}
		select {
		case ended <- err:
		default:
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() { served <- server.Serve(listener) })
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, server.Shutdown(stop))
		serving.Wait()
	}()
	show(g.consentURL(p))
	select {
	case err := <-ended:
		if err != nil {
			return "", fmt.Errorf("google: %w", err)
		}
	case err := <-served:
		return "", fmt.Errorf("google: serve the browser: %w", err)
	case <-ctx.Done():
		return "", fmt.Errorf("google: the browser did not come back: %w", ctx.Err())
	}
	a, _, err := g.load(ctx, user)
	return a.Email, err
}

// served ends the sign-in that was begun on this machine: there is no chat to confirm it
// in. One that was begun in a chat is refused here.
func (g *Google) served(w http.ResponseWriter, r *http.Request, state string) error {
	if r.URL.Query().Get("state") != state {
		g.show(w, "", view{}, errLink)
		return errLink
	}
	user, p, err := g.arrived(r)
	if err == nil {
		p, err = g.take(r.Context(), user, p.State)
	}
	var a account
	if err == nil {
		a, err = g.finish(r.Context(), user, p, p.Code)
	}
	g.show(w, user, view{Title: "Connected", Text: fmt.Sprintf("The Google account%s now serves %s. You can close this page.", ofEmail(a.Email), user)}, err)
	return err
}

// loginScopes are the scopes that a login asks for.
func (g *Google) loginScopes(ctx context.Context, user string, services []string) ([]string, error) {
	if len(services) == 0 {
		services = serviceNames()
	}
	var named []string
	for _, s := range services {
		scopes, unknown := scopesOf(s)
		if len(unknown) > 0 {
			return nil, fmt.Errorf("there is no service %q", s)
		}
		named = append(named, scopes...)
	}
	scopes, _, err := g.toAskFor(ctx, user, named)
	return scopes, err
}
