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
	// startPath is the path of a link. Its page names the user whom the account is for.
	startPath = "/mcp/connect"
	// callbackPath, followed by the name of the server, is the path to which the browser returns.
	callbackPath = "/mcp/callback/"
	// clientPath, followed by the name of the server, describes the bot as a client.
	clientPath = "/mcp/client/"
)

// newView returns the common part of all pages.
func newView(server, title, text string) signin.View {
	return signin.View{Service: server, Title: title, Text: text, Harm: "use your account"}
}

// Pages serves [startPath] and [callbackPath] for browsers, and [clientPath] for authorization
// servers.
func (a *Accounts) Pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+startPath, func(w http.ResponseWriter, r *http.Request) {
		name, p, err := a.signIns.FindByState(r.Context(), r.URL.Query().Get("state"))
		server, user, _ := strings.Cut(name, "/")
		g, readErr := grant{}, error(nil)
		if err == nil {
			g, readErr = decodeGrant(p)
		}
		if err == nil {
			err = readErr
		}
		s, _ := a.cfg.Server(server)
		v := newView(server, "Connect an account at "+server, g.beneficiary(s, func(host string) string { return host }))
		v.Next, v.NextName = a.consentURL(p, g.authServer), g.host()
		a.writePage(w, server, withPerson(v, user, p, g), err)
	})
	mux.HandleFunc("GET "+callbackPath+"{server}", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet { // a HEAD would consume the code and show nothing
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		server := r.PathValue("server")
		user, p, err := a.handleCallback(r.Context(), server, r)
		v := newView(server, "One more step", "Nothing is connected yet.")
		v.Proof = p.Proof
		g, _ := decodeGrant(p) // handleCallback has refused unreadable grants
		a.writePage(w, server, withPerson(v, user, p, g), err)
	})
	mux.HandleFunc("GET "+clientPath+"{server}", a.serveClientDocument)
	return mux
}

// withPerson adds the user and the chat of a sign-in to a page.
func withPerson(v signin.View, user string, p signin.Pending, g grant) signin.View {
	v = v.WithUser(user, p)
	if v.Where = "chat"; g.Direct {
		v.Where = "direct chat"
	}
	return v
}

// handleCallback handles the answer from a consent page.
func (a *Accounts) handleCallback(ctx context.Context, server string, r *http.Request) (string, signin.Pending, error) {
	q := r.URL.Query()
	name, ok := a.signIns.NameOfState(q.Get("state"))
	owner, user, _ := strings.Cut(name, "/")
	s, there := a.cfg.Server(owner)
	if !ok || !there || owner != server {
		return "", signin.Pending{}, signin.ErrInvalidLink // the answer belongs to another server's sign-in
	}
	p, _, err := a.signIns.Find(ctx, name, q.Get("state"))
	if err != nil {
		return user, p, err
	}
	code, err := a.checkAnswer(s, p, q)
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

// writePage writes a page, or an error page if err is not nil.
func (a *Accounts) writePage(w http.ResponseWriter, server string, v signin.View, err error) {
	status := http.StatusOK
	if err != nil {
		text, other := answerToMistake(Server{Name: server}, err)
		if other != nil {
			a.cfg.Logger.Error("sign-in at an MCP server not finished", "server", server, "err", err)
			text = "Something went wrong here. Send /connect " + server + " again."
		}
		v, status = newView(server, "Not connected", text), http.StatusBadRequest
	}
	if err := signin.WritePage(w, status, v); err != nil {
		a.cfg.Logger.Debug("sign-in page not sent", "err", err)
	}
}
