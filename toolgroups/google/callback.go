package google

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"oneclaw/toolgroups/signin"
)

// Paths of [Google.Pages] under the public address.
const (
	// startPath is the path of a link. Its page names the user whom the account is for.
	startPath = "/google/connect"
	// callbackPath is where Google redirects the browser after the consent.
	callbackPath = "/google/callback"
)

// newView returns the common part of all pages.
func newView(title, text string) signin.View {
	return signin.View{Service: "Google", Title: title, Text: text, Where: "direct chat", NextName: "Google", Harm: "read your mail and files"}
}

// Pages serves [startPath] and [callbackPath].
func (g *Google) Pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+startPath, func(w http.ResponseWriter, r *http.Request) {
		user, p, err := g.signIns.FindByState(r.Context(), r.URL.Query().Get("state"))
		v := newView("Connect a Google account", "")
		v.Next = g.consentURL(p)
		g.writePage(w, user, v.WithUser(user, p), err)
	})
	mux.HandleFunc("GET "+callbackPath, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet { // a HEAD would consume the code and show nothing
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		user, p, err := g.storeCode(r)
		v := newView("One more step", "Nothing is connected yet.")
		v.Proof = p.Proof
		g.writePage(w, user, v.WithUser(user, p), err)
	})
	return mux
}

// writePage writes a page, or an error page if err is not nil.
func (g *Google) writePage(w http.ResponseWriter, user string, v signin.View, err error) {
	status := http.StatusOK
	if err != nil {
		text, other := answerToMistake(err)
		if other != nil {
			g.cfg.Logger.Error("google sign-in not finished", "user", user, "err", err)
			text = "Something went wrong here. Send " + command + " again."
		}
		v, status = newView("Not connected", text), http.StatusBadRequest
	}
	if err := signin.WritePage(w, status, v); err != nil {
		g.cfg.Logger.Debug("sign-in page not sent", "err", err)
	}
}

// storeCode stores the code in the request with which a browser returns from Google.
func (g *Google) storeCode(r *http.Request) (string, signin.Pending, error) {
	q := r.URL.Query()
	user, ok := g.signIns.NameOfState(q.Get("state"))
	if !ok {
		return "", signin.Pending{}, signin.ErrInvalidLink
	}
	code := q.Get("code")
	if q.Get("error") != "" {
		code = ""
	}
	p, err := g.signIns.StoreCode(r.Context(), user, q.Get("state"), code, nil)
	return user, p, err
}

// loginTimeout bounds how long [Google.Login] waits for the browser.
const loginTimeout = 2 * time.Minute

// Login connects the account of a user from the machine that the bot runs on. It calls show with
// the address that the operator opens in a browser there. It requests access to the given services;
// none means all.
func (g *Google) Login(ctx context.Context, user string, services []string, show func(link string)) (email string, err error) {
	if g.cfg.ClientID == "" {
		return "", fmt.Errorf("google: %w", errNoOAuth)
	}
	scopes, err := g.loginScopes(ctx, user, services)
	if err != nil {
		return "", fmt.Errorf("google: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("google: listen for the browser: %w", err)
	}
	redirect := "http://" + listener.Addr().String() + callbackPath
	p, _, err := g.signIns.Begin(ctx, user, signin.Pending{RedirectURL: redirect, Scopes: scopes})
	if err != nil {
		return "", errors.Join(err, listener.Close())
	}
	ended := make(chan error, 1)
	mux := http.NewServeMux()
	mux.HandleFunc(callbackPath, func(w http.ResponseWriter, r *http.Request) {
		err := g.completeLocalLogin(w, r, p.State)
		if errors.Is(err, signin.ErrInvalidLink) {
			return // not the expected request
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
		return "", fmt.Errorf("google: the browser did not return: %w", ctx.Err())
	}
	a, _, err := g.load(ctx, user)
	return a.Email, err
}

// completeLocalLogin completes a sign-in begun by Login, which needs no confirmation in a chat. It
// refuses a sign-in begun in a chat.
func (g *Google) completeLocalLogin(w http.ResponseWriter, r *http.Request, state string) error {
	if r.URL.Query().Get("state") != state {
		g.writePage(w, "", signin.View{}, signin.ErrInvalidLink)
		return signin.ErrInvalidLink
	}
	user, p, err := g.storeCode(r)
	if err == nil {
		p, err = g.signIns.Take(r.Context(), user, p.State)
	}
	var a account
	if err == nil {
		a, err = g.connectAccount(r.Context(), user, p, p.Code)
	}
	g.writePage(w, user, newView("Connected", fmt.Sprintf("The Google account%s now serves %s. You can close this page.", emailSuffix(a.Email), user)), err)
	return err
}

// loginScopes returns the scopes that a login requests.
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
	scopes, _, err := g.scopesToRequest(ctx, user, named)
	return scopes, err
}
