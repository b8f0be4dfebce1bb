package google

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"sync"
	"time"
)

// callbackPage says what became of a sign-in.
var callbackPage = template.Must(template.New("callback").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Google account</title></head>
<body style="font-family:system-ui,sans-serif;max-width:32em;margin:15vh auto;padding:0 1em;line-height:1.5">
<h1>{{if .OK}}Connected{{else}}Not connected{{end}}</h1><p>{{.Text}}</p>
{{if .OK}}<p>You can close this page and go back to the chat.</p>{{end}}</body></html>
`))

// Callback is where Google sends the browser after the consent. It belongs under
// [CallbackPath]. The page says what happened.
func (g *Google) Callback() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = g.serveCallback(w, r) // The page has told it.
	})
}

// serveCallback ends a sign-in, shows the page and returns the error.
func (g *Google) serveCallback(w http.ResponseWriter, r *http.Request) error {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	if r.Method != http.MethodGet {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return errLink
	}
	user, a, err := g.arrived(r)
	page := struct {
		OK   bool
		Text string
	}{true, fmt.Sprintf("The Google account%s now serves %s.", ofEmail(a.Email), user)}
	if err != nil {
		page.OK = false
		text, other := told(err)
		if other != nil {
			g.log.Error("google sign-in not finished", "user", user, "err", err)
			text = "Something went wrong here. Send /connect google again."
		}
		page.Text = text
		w.WriteHeader(http.StatusBadRequest)
	}
	if err := callbackPage.Execute(w, page); err != nil {
		g.log.Debug("callback page not sent", "err", err)
	}
	return err
}

// arrived ends the sign-in that a browser comes back from.
func (g *Google) arrived(r *http.Request) (string, account, error) {
	q := r.URL.Query()
	state := q.Get("state")
	user, ok := g.userOf(state)
	if !ok {
		return "", account{}, errLink
	}
	p, err := g.take(r.Context(), user, state)
	if err != nil {
		return user, account{}, err
	}
	if q.Get("error") != "" || q.Get("code") == "" {
		return user, account{}, errDenied
	}
	a, err := g.finish(r.Context(), user, p, q.Get("code"))
	return user, a, err
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
	link, err := g.begin(ctx, user, "", redirect, scopes)
	if err != nil {
		return "", errors.Join(err, listener.Close())
	}
	ended := make(chan error, 1)
	mux := http.NewServeMux()
	mux.HandleFunc(CallbackPath, func(w http.ResponseWriter, r *http.Request) {
		err := g.serveCallback(w, r)
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
	show(link)
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
