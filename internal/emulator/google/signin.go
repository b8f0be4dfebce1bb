package google

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// signIn is the OAuth server. It is guarded by the lock of [Server].
type signIn struct {
	cfg          Config
	codes        map[string]grant
	access       map[string]grant
	refresh      map[string]grant
	serviceKeys  map[string]*rsa.PublicKey
	issuedTokens int
}

// grant is a user's consent.
type grant struct {
	account   string
	scopes    []string
	redirect  string
	challenge string
	expires   time.Time
}

func newSignIn(cfg Config) *signIn {
	return &signIn{
		cfg: cfg, codes: map[string]grant{}, access: map[string]grant{}, refresh: map[string]grant{},
		serviceKeys: map[string]*rsa.PublicKey{},
	}
}

// handle handles a request to the OAuth server. It returns false for any other request.
func (a *signIn) handle(w http.ResponseWriter, r *http.Request, body []byte, inForce faults) bool {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		form = url.Values{}
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /o/oauth2/v2/auth":
		a.showConsent(w, r)
	case "POST /o/oauth2/v2/auth":
		a.handleConsent(w, r, form)
	case "POST /token":
		a.handleToken(w, form, inForce)
	case "POST /revoke":
		a.handleRevoke(w, form, inForce)
	default:
		return false
	}
	return true
}

// consentTemplate is the template of the consent page.
var consentTemplate = template.Must(template.New("consent").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Sign in</title>
<body style="font-family:sans-serif;max-width:30em;margin:3em auto"><h1>Sign in (emulator)</h1>
<p>The app <b>{{.Client}}</b> asks for:</p><ul>{{range .Scopes}}<li>{{.}}</li>{{end}}</ul>
<form method="post"><p>{{range $i, $a := .Accounts}}<label><input type="radio" name="account" value="{{$a}}"{{if eq $i 0}} checked{{end}}> {{$a}}</label><br>{{end}}</p>
<button name="answer" value="allow">Allow</button> <button name="answer" value="deny">Deny</button></form></body></html>`))

// showConsent writes the consent page, with the requested scopes.
func (a *signIn) showConsent(w http.ResponseWriter, r *http.Request) {
	g, err := a.parseConsent(r.URL.Query())
	if err != nil {
		http.Error(w, "Error 400: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = consentTemplate.Execute(w, struct {
		Client           string
		Scopes, Accounts []string
	}{r.URL.Query().Get("client_id"), g.scopes, a.cfg.Accounts})
}

// parseConsent checks the parameters of the consent page.
func (a *signIn) parseConsent(q url.Values) (grant, error) {
	redirect, err := url.Parse(q.Get("redirect_uri"))
	switch {
	case a.cfg.ClientID != "" && q.Get("client_id") != a.cfg.ClientID:
		return grant{}, errors.New("invalid_client")
	case err != nil || redirect.Host == "" || redirect.Scheme != "http" && redirect.Scheme != "https":
		return grant{}, errors.New("redirect_uri_mismatch")
	case q.Get("response_type") != "code":
		return grant{}, errors.New("unsupported_response_type")
	case q.Get("scope") == "":
		return grant{}, errors.New("invalid_scope")
	case q.Get("code_challenge") != "" && q.Get("code_challenge_method") != "S256":
		return grant{}, errors.New("invalid_request: code_challenge_method")
	}
	return grant{scopes: strings.Fields(q.Get("scope")), redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge")}, nil
}

// handleConsent handles the press of a button on the consent page.
func (a *signIn) handleConsent(w http.ResponseWriter, r *http.Request, form url.Values) {
	account := form.Get("account")
	if form.Get("answer") != "allow" {
		account = ""
	}
	target, err := a.redirectURL(r.URL.Query(), account)
	if err != nil {
		http.Error(w, "Error 400: "+err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, target, http.StatusFound)
}

func (a *signIn) redirectURL(q url.Values, account string) (string, error) {
	g, err := a.parseConsent(q)
	if err != nil {
		return "", err
	}
	target, err := url.Parse(g.redirect)
	if err != nil {
		return "", err
	}
	back := target.Query()
	back.Set("state", q.Get("state"))
	if account == "" {
		back.Set("error", "access_denied")
	} else {
		if err := a.cfg.checkAccount(account); err != nil {
			return "", err
		}
		g.account, g.expires = account, a.cfg.Now().Add(10*time.Minute)
		code := "4/0" + rand.Text()
		a.codes[code] = g
		back.Set("code", code)
		back.Set("scope", strings.Join(g.scopes, " "))
	}
	target.RawQuery = back.Encode()
	return target.String(), nil
}

// handleToken issues tokens (RFC 6749; RFC 7523 for service accounts).
func (a *signIn) handleToken(w http.ResponseWriter, form url.Values, inForce faults) {
	if rej := inForce.match("auth.token"); rej != nil {
		writeError(w, rej)
		return
	}
	service := form.Get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer"
	badClient := a.cfg.ClientID != "" && form.Get("client_id") != a.cfg.ClientID ||
		a.cfg.ClientSecret != "" && form.Get("client_secret") != a.cfg.ClientSecret
	if badClient && !service {
		writeTokenError(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	var g grant
	var ok bool
	answer := doc{"token_type": "Bearer", "expires_in": int(a.cfg.tokenLifetime.Seconds())}
	switch {
	case service:
		g, ok = a.delegatedGrant(form.Get("assertion"))
	case form.Get("grant_type") == "refresh_token":
		g, ok = a.refresh[form.Get("refresh_token")]
	case form.Get("grant_type") == "authorization_code":
		if g, ok = a.redeem(form); ok {
			token := "1//" + rand.Text()
			a.refresh[token] = g
			answer["refresh_token"] = token
		}
	default:
		writeTokenError(w, http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	if !ok {
		writeTokenError(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	if service && len(g.scopes) == 0 { // developers.google.com/identity/protocols/oauth2/service-account#error-codes
		writeTokenError(w, http.StatusBadRequest, "invalid_scope")
		return
	}
	g.expires = a.cfg.Now().Add(a.cfg.tokenLifetime)
	token := "ya29." + rand.Text()
	a.access[token] = g
	a.issuedTokens++
	answer["access_token"], answer["scope"] = token, strings.Join(g.scopes, " ")
	writeAnswer(w, answer)
}

// redeem exchanges an authorization code for its grant. A code can be used once.
func (a *signIn) redeem(form url.Values) (grant, bool) {
	code := form.Get("code")
	g, ok := a.codes[code]
	delete(a.codes, code)
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	proof := base64.RawURLEncoding.EncodeToString(sum[:])
	proven := g.challenge == "" || subtle.ConstantTimeCompare([]byte(proof), []byte(g.challenge)) == 1
	return g, ok && proven && g.redirect == form.Get("redirect_uri") && a.cfg.Now().Before(g.expires)
}

func writeTokenError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"error":"` + code + `","error_description":"Bad Request"}`))
}

// handleRevoke revokes all grants of the account that owns a token.
func (a *signIn) handleRevoke(w http.ResponseWriter, form url.Values, inForce faults) {
	if rej := inForce.match("auth.revoke"); rej != nil {
		writeError(w, rej)
		return
	}
	token := form.Get("token")
	g, ok := a.refresh[token]
	if !ok {
		g, ok = a.access[token]
	}
	if !ok {
		writeTokenError(w, http.StatusBadRequest, "invalid_token")
		return
	}
	a.revokeAccount(g.account)
	writeAnswer(w, doc{})
}

func (a *signIn) revokeAccount(account string) {
	same := func(_ string, g grant) bool { return g.account == account }
	maps.DeleteFunc(a.access, same)
	maps.DeleteFunc(a.refresh, same)
}

// authenticate returns the grant of a request's token and checks its scopes.
func (a *signIn) authenticate(r *http.Request, c *call) (grant, *rejection) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	g, known := a.access[token]
	if !ok || !known || !a.cfg.Now().Before(g.expires) {
		return grant{}, &rejection{
			status: http.StatusUnauthorized, reason: "authError",
			message: "Request had invalid authentication credentials. Expected OAuth 2 access token.",
		}
	}
	if len(c.method.Scopes) > 0 && !slices.ContainsFunc(c.method.Scopes, func(s string) bool { return slices.Contains(g.scopes, s) }) {
		return grant{}, &rejection{
			status: http.StatusForbidden, reason: "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
			message: "Request had insufficient authentication scopes.",
		}
	}
	return g, nil
}
