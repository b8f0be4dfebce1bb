// Package oauth signs people in at MCP servers that want it (OAuth 2.1 as the Model
// Context Protocol has it) and keeps the tokens of each.
//
// A connection belongs to one person and one address of a server: another person's
// tokens are never used, and none goes to a server that has come under the same name. It
// is bound to the authorisation server at which consent was given: its tokens are
// refreshed and revoked there, wherever the MCP server points later.
package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"golang.org/x/oauth2"

	"oneclaw/internal/guard"
	"oneclaw/internal/named"
	"oneclaw/internal/redact"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/signin"
)

// Codes of errors that the model is told.
const (
	// CodeNotConnected is a call of a user who has to connect first.
	CodeNotConnected = "not_connected"
	// CodeSignIn is a sign-in that does not work at the moment.
	CodeSignIn = "sign_in_unavailable"
)

const (
	accountPrefix = "mcp/account/"
	pendingPrefix = "mcp/pending/"
	clientPrefix  = "mcp/client/"
	statePlace    = "mcp/state"

	// requestTime bounds each request to an authorisation server.
	requestTime = 20 * time.Second
)

// Server is what tokens are for.
type Server struct {
	// Name is that of the configuration, URL the address of the server.
	Name, URL string
	// ClientID and ClientSecret are of a client that was registered by hand. Empty means
	// that one is registered where the server lets clients do that.
	ClientID, ClientSecret string
	// Issuer is the authorisation server at which that was done. Empty means the one that
	// the server named first.
	Issuer string
	// Scopes are those to ask for. None means those that the server names.
	Scopes []string
	// HTTP reaches the server's metadata and its authorisation server.
	HTTP *http.Client
}

// Config is what connections need.
type Config struct {
	// KV keeps tokens and sign-ins, encrypted with SecretKey.
	KV        storage.KV
	SecretKey []byte
	// PublicURL is where [Accounts.Pages] is reached from outside, without the path. Empty
	// means that people paste the address that their browser ends on.
	PublicURL string
	// LocalURL takes the place of a PublicURL that is missing. Empty means http://127.0.0.1:8787.
	LocalURL string
	// Server finds a server by the name in an address.
	Server func(name string) (Server, bool)
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Logger gets what people are not told. nil discards it.
	Logger *slog.Logger
}

// Accounts are the connections of people. They may be used concurrently.
type Accounts struct {
	cfg     Config
	seal    *redact.Sealer
	signIns *signin.Flows
	locks   *named.Semaphores // one refresh at a time for each person and server, and one discovery
}

// New checks the configuration. It connects to nothing.
func New(cfg Config) (*Accounts, error) {
	if cfg.KV == nil || cfg.Server == nil {
		return nil, errors.New("mcp: no store for connections")
	}
	sealer, err := redact.NewSealer(cfg.SecretKey, "oneclaw mcp accounts v1")
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	cfg.LocalURL = cmp.Or(cfg.LocalURL, "http://127.0.0.1:8787")
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Accounts{
		cfg: cfg, seal: sealer, locks: named.New(1),
		signIns: signin.New(signin.Config{KV: cfg.KV, Seal: sealer, Prefix: pendingPrefix, StatePlace: statePlace, Now: cfg.Now}),
	}, nil
}

// grantor is the authorisation server of a connection and what the bot is there. All of
// it is as it was when the link was made.
type grantor struct {
	// URL is the address of the MCP server, Resource what it calls itself.
	URL      string `json:"url"`
	Resource string `json:"resource"`
	// Issuer is the name of the authorisation server; the others are its endpoints.
	Issuer    string `json:"issuer"`
	AuthURL   string `json:"auth_url"`
	TokenURL  string `json:"token_url"`
	RevokeURL string `json:"revoke_url,omitempty"`
	// Named says that it names itself in its answers (RFC 9207).
	Named  bool   `json:"named,omitempty"`
	Client client `json:"client"`
}

// config is the grantor as the library wants it.
func (g grantor) config(redirect string, scopes ...string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: g.Client.ID, ClientSecret: g.Client.Secret, RedirectURL: redirect, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: g.AuthURL, TokenURL: g.TokenURL, AuthStyle: g.Client.style()},
	}
}

// host is what people are shown of it.
func (g grantor) host() string {
	u, err := url.Parse(g.AuthURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// account is what is kept of a connection.
type account struct {
	grantor
	// Scopes are those that were granted, Wanted those that a call lacked.
	Scopes []string `json:"scopes,omitempty"`
	Wanted []string `json:"wanted,omitempty"`
	// Access is a token that is valid until Expiry, which is zero where that is unknown. Life is
	// how long it was valid at first.
	Access  string        `json:"access"`
	Expiry  time.Time     `json:"expiry,omitzero"`
	Life    time.Duration `json:"life,omitempty"`
	Refresh string        `json:"refresh,omitempty"`
	// Lost says that the authorisation server no longer knows the consent.
	Lost bool `json:"lost,omitempty"`
	// Busy is until when a process fetches a new token: a refresh token works once.
	Busy time.Time `json:"busy,omitzero"`
	// Connected is when consent was given.
	Connected time.Time `json:"connected"`
}

// valid reports whether the token can be used, and for a while yet. A fresh one is as good as
// they get, however soon it ends.
func (a account) valid(now time.Time, rejected string, fresh bool) bool {
	yet := signin.Early(a.Life)
	if fresh {
		yet = 0
	}
	return a.Access != "" && a.Access != rejected && (a.Expiry.IsZero() || now.Add(yet).Before(a.Expiry))
}

// awaits reports whether another process fetches a token. A claim that reaches further
// than any does is of a clock that is wrong.
func (a account) awaits(now time.Time) bool {
	return now.Before(a.Busy) && !a.Busy.After(now.Add(busyTime))
}

// discovery is the name of the lock for finding out where people sign in. What servers say of
// that takes memory.
const discovery = ""

// of names what belongs to a person at a server.
func of(server, user string) string { return server + "/" + user }

// get reads and decrypts a value; storage.ErrNotFound or [redact.ErrUnreadable] if it cannot.
func (a *Accounts) get(ctx context.Context, key string, value any) (storage.Revision, error) {
	entry, err := a.cfg.KV.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	data, err := a.seal.Open(key, entry.Value)
	if err == nil {
		err = json.Unmarshal(data, value)
	}
	return entry.Revision, err
}

// put encrypts a value and writes it over a revision.
func (a *Accounts) put(ctx context.Context, key string, value any, rev storage.Revision) (storage.Revision, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return 0, err
	}
	return a.cfg.KV.Put(ctx, key, a.seal.Seal(key, data), rev)
}

// load reads the connection of a person. One of another address is none.
func (a *Accounts) load(ctx context.Context, s Server, user string) (account, storage.Revision, error) {
	var found account
	rev, err := a.get(ctx, accountPrefix+of(s.Name, user), &found)
	if err == nil && found.URL != s.URL {
		return account{}, rev, storage.ErrNotFound
	}
	return found, rev, err
}

// with has the library use the client of a server.
func with(ctx context.Context, s Server) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, s.HTTP)
}

// command makes a new link.
func command(s Server) string { return "/connect " + s.Name }

// told is the answer to a mistake of a person; other errors stay errors.
func told(s Server, err error) (string, error) {
	if known, ok := errors.AsType[signin.Mistake](err); ok {
		return known.Sentence(command(s)), nil
	}
	return "", err
}

// mistakef makes an error that people are told.
func mistakef(format string, args ...any) error {
	return signin.Mistake(fmt.Sprintf(format, args...))
}

// quoted shows what a server said, on one line and as nothing but text.
func quoted(text string) string {
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

// answerOf is what an authorisation server said in an error; false where it said nothing.
func answerOf(err error) (code string, status int, ok bool) {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return "", 0, false
	}
	return answer.ErrorCode, answer.Response.StatusCode, true
}

// plain is the cause of a failed request, without addresses and bodies.
func plain(err error) string { return quoted(guard.Reason(err).Error()) }

func notConnected(s Server) error {
	return toolgroups.Errorf(CodeNotConnected, "The user has not connected %s yet. Ask the user to send /connect %s and to open the link.", s.Name, s.Name)
}

func ended(s Server) error {
	return toolgroups.Errorf(CodeNotConnected, "The user's connection to %s has ended or was withdrawn. Ask the user to send /connect %s and to open the link.", s.Name, s.Name)
}
