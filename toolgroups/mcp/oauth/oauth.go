// Package oauth signs users in at MCP servers that require it (OAuth 2.1 as in the Model Context
// Protocol) and stores their tokens.
//
// A connection belongs to one user and one address of a server. The bot uses no other user's tokens,
// and sends none to a different server of the same name. A connection is bound to the authorization
// server at which consent was given: its tokens are refreshed and revoked there, even if the MCP
// server later names another one.
package oauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/publicsuffix"
	"golang.org/x/oauth2"

	"oneclaw/internal/guard"
	"oneclaw/internal/named"
	"oneclaw/internal/redact"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/signin"
)

// Error codes for the model.
const (
	// CodeNotConnected means that the user has to connect first.
	CodeNotConnected = "not_connected"
	// CodeSignIn means that the sign-in does not work at the moment.
	CodeSignIn = "sign_in_unavailable"
)

const (
	accountPrefix = "mcp/account/"
	pendingPrefix = "mcp/pending/"
	clientPrefix  = "mcp/client/"
	stateKey      = "mcp/state"

	// requestTime bounds each request to an authorization server.
	requestTime = 20 * time.Second
)

// Server is a server that users sign in to.
type Server struct {
	// Name is the name in the configuration, URL the address of the server.
	Name, URL string
	// ClientID and ClientSecret belong to a client that was registered by hand. If empty, the bot
	// registers a client if the server permits that.
	ClientID, ClientSecret string
	// Issuer is the authorization server of ClientID. Empty means the one that the server named
	// first.
	Issuer string
	// Others are the addresses of other servers and of their sign-ins. Unless Issuer says so, nobody signs in there.
	Others []string
	// Scopes are the scopes to request. None means those that the server names.
	Scopes []string
	// HTTP reaches the server's metadata and its authorization server.
	HTTP *http.Client
}

// Config configures [Accounts].
type Config struct {
	// KV stores tokens and sign-ins, encrypted with SecretKey.
	KV        storage.KV
	SecretKey []byte
	// PublicURL is the external address of [Accounts.Pages], without the path. If empty, users
	// paste the address at which their browser ends.
	PublicURL string
	// LocalURL is used without a PublicURL. Empty means http://127.0.0.1:8787.
	LocalURL string
	// Server returns a server by the name in an address.
	Server func(name string) (Server, bool)
	// Now is the clock. Required.
	Now func() time.Time
	// Logger gets the details that users do not see. nil discards them.
	Logger *slog.Logger
}

// Accounts holds the connections of all users. It may be used concurrently.
type Accounts struct {
	cfg     Config
	sealer  *redact.Sealer
	signIns *signin.FlowStore
	locks   *named.Semaphores // one refresh at a time per user and server, and one discovery
}

// New checks the configuration and connects to nothing.
func New(cfg Config) (*Accounts, error) {
	if cfg.KV == nil || cfg.Server == nil || cfg.Now == nil {
		return nil, errors.New("mcp: KV, Server and Now are required for connections")
	}
	sealer, err := redact.NewSealer(cfg.SecretKey, "oneclaw mcp accounts v1")
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	cfg.LocalURL = cmp.Or(cfg.LocalURL, "http://127.0.0.1:8787")
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Accounts{
		cfg: cfg, sealer: sealer, locks: named.New(1),
		signIns: signin.New(signin.Config{KV: cfg.KV, Sealer: sealer, Prefix: pendingPrefix, StateContext: stateKey, Now: cfg.Now}),
	}, nil
}

// authServer is the authorization server of a connection and the bot's client there, as they were
// when the link was made.
type authServer struct {
	// URL is the address of the MCP server, Resource its resource identifier.
	URL      string `json:"url"`
	Resource string `json:"resource"`
	// Issuer identifies the authorization server; the URLs are its endpoints.
	Issuer    string `json:"issuer"`
	AuthURL   string `json:"auth_url"`
	TokenURL  string `json:"token_url"`
	RevokeURL string `json:"revoke_url,omitempty"`
	// SendsIssuer is true if the server includes its issuer in responses (RFC 9207).
	SendsIssuer bool   `json:"named,omitempty"`
	Client      client `json:"client"`
}

// config returns the library's configuration for the authorization server.
func (g authServer) config(redirect string, scopes ...string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: g.Client.ID, ClientSecret: g.Client.Secret, RedirectURL: redirect, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: g.AuthURL, TokenURL: g.TokenURL, AuthStyle: g.Client.authStyle()},
	}
}

// host returns the host of the authorization server, which is shown to users.
func (g authServer) host() string {
	u, err := url.Parse(g.AuthURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// beneficiary says who gets what a person permits, unless the sign-in of a server is one that somebody here named: a
// page of the server's own can lead on to that of any service. Empty for none.
func (g authServer) beneficiary(s Server, quote func(string) string) string {
	u, err := url.Parse(g.URL)
	if err != nil || u.Host == "" || s.Issuer != "" {
		return ""
	}
	return fmt.Sprintf("What you permit, also on a page that it leads on to, is given to %s. Go on only if you trust that with it.", quote(u.Host))
}

// owner returns the other server at whose site one of the addresses of a sign-in is, unless somebody here named the
// sign-in: the tokens of that service would reach the server.
func (s Server) owner(addresses ...string) string {
	if s.Issuer != "" {
		return ""
	}
	for _, other := range s.Others {
		at := site(other)
		if other != "" && at != site(s.URL) && slices.ContainsFunc(addresses, func(address string) bool { return address != "" && site(address) == at }) {
			return at
		}
	}
	return ""
}

// site returns the domain that the owner of an address has registered, or the host and port where there is none.
func site(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	registered, err := publicsuffix.EffectiveTLDPlusOne(strings.ToLower(u.Hostname()))
	if _, ip := netip.ParseAddr(u.Hostname()); ip == nil || err != nil {
		return strings.ToLower(u.Host)
	}
	return registered
}

// account is the stored record of a connection.
type account struct {
	authServer
	// Scopes are the granted scopes, MissingScopes those that a call lacked.
	Scopes        []string `json:"scopes,omitempty"`
	MissingScopes []string `json:"wanted,omitempty"`
	// AccessToken is valid until Expiry, which is zero if unknown. Lifetime is the time for which the
	// token was issued.
	AccessToken  string        `json:"access"`
	Expiry       time.Time     `json:"expiry,omitzero"`
	Lifetime     time.Duration `json:"life,omitempty"`
	RefreshToken string        `json:"refresh,omitempty"`
	// ConsentEnded is true if the consent has expired or was withdrawn.
	ConsentEnded bool `json:"lost,omitempty"`
	// RefreshingUntil is when the claim of a refreshing process expires: a refresh token works once.
	RefreshingUntil time.Time `json:"busy,omitzero"`
	// ConnectedAt is the time of the consent.
	ConnectedAt time.Time `json:"connected"`
}

// isValid reports whether there is a token that is not the rejected one and does not expire soon. A
// fresh token is valid until it expires.
func (a account) isValid(now time.Time, rejected string, fresh bool) bool {
	yet := signin.RenewBefore(a.Lifetime)
	if fresh {
		yet = 0
	}
	return a.AccessToken != "" && a.AccessToken != rejected && (a.Expiry.IsZero() || now.Add(yet).Before(a.Expiry))
}

// isRefreshing reports whether another process is refreshing the token. Its clock may be ahead, but a
// claim for very long comes from a wrong one.
func (a account) isRefreshing(now time.Time) bool {
	return now.Before(a.RefreshingUntil) && !a.RefreshingUntil.After(now.Add(maxRefreshTime+maxClockSkew))
}

// discoveryLock names the lock that serializes discover, whose responses take memory.
const discoveryLock = ""

// accountKey returns the key of a user at a server.
func accountKey(server, user string) string { return server + "/" + user }

func (a *Accounts) put(ctx context.Context, key string, value any, rev storage.Revision) (storage.Revision, error) {
	return signin.SaveSealed(ctx, a.cfg.KV, a.sealer, key, value, rev)
}

// load reads the connection of a user, and ignores a connection to another address.
func (a *Accounts) load(ctx context.Context, s Server, user string) (account, storage.Revision, error) {
	found, rev, err := signin.LoadSealed[account](ctx, a.cfg.KV, a.sealer, accountPrefix+accountKey(s.Name, user))
	if err == nil && found.URL != s.URL {
		return account{}, rev, storage.ErrNotFound
	}
	return found, rev, err
}

// withHTTPClient makes the library use the client of a server.
func withHTTPClient(ctx context.Context, s Server) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, s.lenientClient())
}

// lenientClient returns the HTTP client for the endpoints of an authorization server.
func (s Server) lenientClient() *http.Client {
	client := *s.HTTP
	client.Transport = wholeTransport{cmp.Or[http.RoundTripper](s.HTTP.Transport, http.DefaultTransport)}
	return &client
}

// wholeTransport makes the times in responses whole numbers: the libraries lose the tokens over any other.
type wholeTransport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t wholeTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(withWholeTimes(data))), -1
	return resp, nil
}

// withWholeTimes returns a response with its times as whole numbers, or without those that are none.
func withWholeTimes(data []byte) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return data
	}
	changes := false
	for _, name := range []string{"expires_in", "client_secret_expires_at", "client_id_issued_at"} {
		text := string(fields[name])
		if _, err := strconv.ParseInt(text, 10, 32); text == "" || err == nil {
			continue
		}
		changes = true
		_ = json.Unmarshal(fields[name], &text) // some write the number as a text
		n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		fields[name] = strconv.AppendInt(nil, int64(min(max(n, 0), maxTime)), 10)
		if err != nil || n != n {
			delete(fields, name)
		}
	}
	changed, err := json.Marshal(fields)
	if !changes || err != nil {
		return data
	}
	return changed
}

// maxTime bounds times in responses, in seconds.
const maxTime = 1 << 40

// connectCommand returns the command that requests a new link.
func connectCommand(s Server) string { return "/connect " + s.Name }

// answerToMistake returns the answer to a user's mistake; other errors stay errors.
func answerToMistake(s Server, err error) (string, error) {
	if known, ok := errors.AsType[signin.UserError](err); ok {
		return known.Sentence(connectCommand(s)), nil
	}
	return "", err
}

// mistakef makes an error that is shown to users.
func mistakef(format string, args ...any) error {
	return signin.UserError(fmt.Sprintf(format, args...))
}

// quote returns a server's text as one line of code in Markdown.
func quote(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '`', unicode.Is(unicode.Cf, r):
			return -1
		case unicode.IsControl(r), unicode.IsSpace(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return "`" + wording.Clip(cmp.Or(strings.TrimSpace(text), "nothing"), 200) + "`"
}

// errorAnswer returns the error code and status in an authorization server's response; false if
// there was no response.
func errorAnswer(err error) (code string, status int, ok bool) {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return "", 0, false
	}
	return answer.ErrorCode, answer.Response.StatusCode, true
}

// plainError returns the cause of a failed request, without addresses and bodies.
func plainError(err error) string { return quote(guard.Reason(err).Error()) }

func notConnectedError(s Server) error {
	return toolgroups.Errorf(CodeNotConnected, "The user has not connected %s yet. Ask the user to send /connect %s and to open the link.", s.Name, s.Name)
}

func endedError(s Server) error {
	return toolgroups.Errorf(CodeNotConnected, "The user's connection to %s has ended or was withdrawn. Ask the user to send /connect %s and to open the link.", s.Name, s.Name)
}
