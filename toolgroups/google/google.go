package google

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oneclaw/internal/named"
	"oneclaw/internal/readable"
	"oneclaw/internal/redact"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/drive"
	"oneclaw/toolgroups/google/mail"
	"oneclaw/toolgroups/google/organizer"
	"oneclaw/toolgroups/google/service"
	"oneclaw/toolgroups/signin"
)

// Config configures [Google].
type Config struct {
	// ClientID and ClientSecret are the operator's OAuth client. If empty, users cannot connect
	// accounts, and the tools return an error that says so.
	ClientID     string
	ClientSecret string
	// APIURL replaces the scheme and host of all Google addresses. Empty means Google.
	APIURL string
	// PublicURL is the external address of [Google.Pages], without the path. If empty, users whose
	// browser cannot open LocalURL paste the address at which it ends.
	PublicURL string
	// LocalURL is the address of the callback on the bot's own machine, used without a PublicURL.
	// Empty means http://127.0.0.1:8787.
	LocalURL string
	// KV stores the accounts.
	KV storage.KV
	// SecretKey encrypts the accounts, at least 16 bytes.
	SecretKey []byte
	// ServiceAccount is the key file of a service account with domain-wide delegation, which acts
	// for the users in Subjects who have not connected an account. For those who have connected the same
	// account, it does only what Google allows to service accounts alone.
	ServiceAccount []byte
	// Subjects are the addresses that ServiceAccount impersonates, by user.
	Subjects map[string]string
	// Reader reads HTML mails. nil means a new one.
	Reader *readable.Reader
	// transport sends the requests. nil means a new one.
	transport http.RoundTripper
	// pause is the first pause before a retry; each further one is twice as long. 0 means half a
	// second.
	pause time.Duration
	// Location returns a user's time zone, which times without an offset have. nil means the host's.
	Location func(context.Context, toolgroups.Scope) *time.Location
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Logger gets the details that the model does not see. nil discards them.
	Logger *slog.Logger
}

// Google holds the tools and accounts. It may be used concurrently.
type Google struct {
	cfg         Config
	sealer      *redact.Sealer
	signIns     *signin.FlowStore
	locks       *named.Semaphores // one token request at a time per user
	delegate    *delegate
	apiURL      *url.URL     // [Config].APIURL; nil means Google
	oauthClient *http.Client // for OAuth, whose requests contain their own secrets
	base        http.RoundTripper
}

// New checks the configuration and connects to nothing.
func New(cfg Config) (*Google, error) {
	if cfg.KV == nil {
		return nil, errors.New("google: KV is required")
	}
	sealer, err := redact.NewSealer(cfg.SecretKey, "oneclaw google accounts v1")
	if err != nil {
		return nil, fmt.Errorf("google: %w", err)
	}
	target, err := parseURL(cfg.APIURL)
	if err != nil {
		return nil, fmt.Errorf("google: API address: %w", err)
	}
	if _, err := parseURL(cfg.PublicURL); err != nil {
		return nil, fmt.Errorf("google: public address: %w", err)
	}
	agent, err := newDelegate(cfg.ServiceAccount, cfg.Subjects)
	if err != nil {
		return nil, fmt.Errorf("google: %w", err)
	}
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	if cfg.transport == nil {
		cfg.transport = newTransport()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Location == nil {
		cfg.Location = func(context.Context, toolgroups.Scope) *time.Location { return time.Local }
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Reader == nil {
		if cfg.Reader, err = readable.NewReader(cfg.Logger); err != nil {
			return nil, fmt.Errorf("google: %w", err)
		}
	}
	moved := &hostRewriter{target: target, base: cfg.transport}
	cfg.pause = cmp.Or(cfg.pause, 500*time.Millisecond)
	return &Google{
		cfg:         cfg,
		sealer:      sealer,
		signIns:     signin.New(signin.Config{KV: cfg.KV, Sealer: sealer, Prefix: pendingPrefix, StateContext: stateKey, Now: cfg.Now}),
		locks:       named.New(1),
		delegate:    agent,
		apiURL:      target,
		oauthClient: &http.Client{Transport: &retryTransport{base: moved, pause: cfg.pause, alwaysRepeat: true, now: cfg.Now}, CheckRedirect: neverRedirect},
		base:        &retryTransport{base: moved, pause: cfg.pause, now: cfg.Now},
	}, nil
}

// parseURL parses an http or https address without a user. It returns nil for an empty text.
func parseURL(s string) (*url.URL, error) {
	if s == "" {
		return nil, nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, errors.New("it must look like https://host")
	}
	return u, nil
}

// groups returns all groups in the order of the listing.
func groups() []service.Group {
	return []service.Group{
		mail.Gmail(), mail.Settings(), drive.Drive(), organizer.Calendar(), organizer.Contacts(),
		drive.Docs(), drive.Sheets(), drive.Slides(), drive.Forms(), organizer.Tasks(),
	}
}

// Groups returns the groups with their tools.
func (g *Google) Groups() ([]toolgroups.Group, error) {
	var out []toolgroups.Group
	for _, group := range groups() {
		built, err := group.Build(g.newConn)
		if err != nil {
			return nil, fmt.Errorf("google: %w", err)
		}
		for i := range built.Tools {
			built.Tools[i].Personal = true
		}
		out = append(out, built)
	}
	return out, nil
}

// AccessToken returns a valid access token for the account of the user of a call, with the permissions
// that the user has granted, or those of all groups if the service account acts for the user. The error
// says how to connect an account.
func (g *Google) AccessToken(ctx context.Context, scope toolgroups.Scope) (string, error) {
	tokens, err := g.newTokenSource(ctx, scope.User, nil)
	if err != nil {
		return "", err
	}
	return tokens(ctx, "")
}

// Email returns the address of the account of the user of a call, "" if it is unknown.
func (g *Google) Email(ctx context.Context, scope toolgroups.Scope) (string, error) {
	email, _, err := g.Account(ctx, scope.User)
	return email, err
}

// newConn implements [service.Connect].
func (g *Google) newConn(ctx context.Context, call toolgroups.Call, scopes []string) (*service.Conn, error) {
	tokens, err := g.newTokenSource(ctx, call.User, scopes)
	if err != nil {
		return nil, err
	}
	writes := new(service.Writes)
	return &service.Conn{
		Call: call, Writes: writes, Scopes: scopes, Reader: g.cfg.Reader, Location: g.cfg.Location(ctx, call.Scope), Pause: g.cfg.pause, Now: g.cfg.Now,
		Client: &http.Client{
			Transport:     &authTransport{tokens: tokens, base: g.base, onResponse: writes.Record},
			CheckRedirect: neverRedirect,
		},
	}, nil
}

// neverRedirect keeps redirects from carrying a token to another host.
func neverRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
