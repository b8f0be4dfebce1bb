package oauth

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"oneclaw/toolgroups/signin"
)

// Paths of [Accounts.Pages] under the public address.
const (
	// StartPath is the path of a link: its page says whom the account is for.
	StartPath = "/mcp/connect"
	// CallbackPath, followed by the name of the server, is where the browser returns to.
	CallbackPath = "/mcp/callback/"
	// ClientPath, followed by the name of the server, describes the bot as a client.
	ClientPath = "/mcp/client/"
)

// view returns the common part of all pages.
func view(server, title, text string) signin.View {
	return signin.View{Service: server, Title: title, Text: text, Harm: "use your account"}
}

// Pages serves [StartPath] and [CallbackPath] for browsers, and [ClientPath] for authorisation
// servers.
func (a *Accounts) Pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+StartPath, func(w http.ResponseWriter, r *http.Request) {
		name, p, err := a.signIns.FindByState(r.Context(), r.URL.Query().Get("state"))
		server, user, _ := strings.Cut(name, "/")
		g, readErr := grant{}, error(nil)
		if err == nil {
			g, readErr = granted(p)
		}
		if err == nil {
			err = readErr
		}
		v := view(server, "Connect an account at "+server, "")
		v.Next, v.NextName = a.consentURL(p, g.authServer), g.host()
		a.show(w, server, person(v, user, p, g), err)
	})
	mux.HandleFunc("GET "+CallbackPath+"{server}", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet { // a HEAD would consume the code and show nothing
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		server := r.PathValue("server")
		user, p, err := a.arrived(r.Context(), server, r)
		v := view(server, "One more step", "Nothing is connected yet.")
		v.Proof = p.Proof
		g, _ := granted(p) // unreadable ones were refused before
		a.show(w, server, person(v, user, p, g), err)
	})
	mux.HandleFunc("GET "+ClientPath+"{server}", a.describe)
	return mux
}

// person adds whom a sign-in is for.
func person(v signin.View, user string, p signin.Pending, g grant) signin.View {
	v = v.WithUser(user, p)
	if v.Where = "chat"; g.Direct {
		v.Where = "direct chat"
	}
	return v
}

// arrived handles the answer of a consent page.
func (a *Accounts) arrived(ctx context.Context, server string, r *http.Request) (string, signin.Pending, error) {
	q := r.URL.Query()
	name, ok := a.signIns.NameOfState(q.Get("state"))
	owner, user, _ := strings.Cut(name, "/")
	s, there := a.cfg.Server(owner)
	if !ok || !there || owner != server {
		return "", signin.Pending{}, signin.ErrLink // the answer of another server's sign-in
	}
	p, _, err := a.signIns.Find(ctx, name, q.Get("state"))
	if err != nil {
		return user, p, err
	}
	code, err := a.check(s, p, q)
	if err != nil {
		return user, p, err
	}
	p, err = a.signIns.StoreCode(ctx, name, q.Get("state"), code, func(p signin.Pending) (string, error) {
		got, err := a.redeem(ctx, s, p, code)
		if err != nil {
			return "", err
		}
		data, err := json.Marshal(got)
		return string(data), err
	})
	return user, p, err
}

// show writes a page, or the page of an error.
func (a *Accounts) show(w http.ResponseWriter, server string, v signin.View, err error) {
	status := http.StatusOK
	if err != nil {
		text, other := answerToMistake(Server{Name: server}, err)
		if other != nil {
			a.cfg.Logger.Error("sign-in at an MCP server not finished", "server", server, "err", err)
			text = "Something went wrong here. Send /connect " + server + " again."
		}
		v, status = view(server, "Not connected", text), http.StatusBadRequest
	}
	if err := signin.Show(w, status, v); err != nil {
		a.cfg.Logger.Debug("sign-in page not sent", "err", err)
	}
}
