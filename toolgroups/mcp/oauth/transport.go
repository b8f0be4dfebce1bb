package oauth

import (
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"oneclaw/toolgroups"
)

// Transport sends one user's requests to one server with that user's token.
type Transport struct {
	Accounts *Accounts
	Server   Server
	User     string
	// Base sends the requests, only to the address of the server.
	Base http.RoundTripper
}

// RoundTrip sends a request, and repeats it once with a new token if the server rejects the
// first.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := t.Accounts.Token(req.Context(), t.Server, t.User, "")
	if err != nil {
		return nil, err
	}
	resp, err := t.send(req, token.value)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return t.checkScopes(req, resp, err)
	}
	drainBody(resp)
	fresh, err := t.Accounts.Token(req.Context(), t.Server, t.User, token.value)
	if err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return nil, t.refusedError()
		}
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	if resp, err = t.send(again, fresh.value); err == nil && resp.StatusCode == http.StatusUnauthorized {
		drainBody(resp)
		return nil, t.refusedError()
	}
	return t.checkScopes(req, resp, err)
}

func (t *Transport) send(req *http.Request, token string) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return t.Base.RoundTrip(req)
}

func (t *Transport) refusedError() error {
	return toolgroups.Errorf(CodeNotConnected, "%s does not take the user's sign-in any more, though it was renewed. Ask the user to send /connect %s again.",
		t.Server.Name, t.Server.Name)
}

// checkScopes records the missing scopes if the server refused a request for lack of them.
func (t *Transport) checkScopes(req *http.Request, resp *http.Response, err error) (*http.Response, error) {
	if err != nil || resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	said, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	i := slices.IndexFunc(said, func(c oauthex.Challenge) bool { return c.Params["error"] == "insufficient_scope" })
	if err != nil || i < 0 {
		return resp, nil // refused for another reason
	}
	drainBody(resp)
	scopes := strings.Fields(said[i].Params["scope"])
	t.Accounts.storeMissingScopes(req.Context(), t.Server, t.User, scopes)
	return nil, toolgroups.Errorf(toolgroups.CodeDenied, "The user has not granted %s the permission %s yet. Ask the user to send /connect %s and to open the link.",
		t.Server.Name, quote(strings.Join(scopes, " ")), t.Server.Name)
}

// drainBody drains and closes a body.
func drainBody(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
}
