package telegram

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oneclaw/internal/emulator/wire"
)

// Defaults of [Config].
const (
	defaultToken       = "123456:EMULATOR-token-for-tests-only"
	DefaultUsername    = "oneclaw_bot"
	defaultMaxMessages = 5000
	defaultMaxUpdates  = 100_000
	// defaultWebhookRetryDelay is from WebhookActor.cpp.
	defaultWebhookRetryDelay = time.Second
)

// Versions of the Bot API that the emulator distinguishes. Before 10.2 there are no ephemeral messages,
// and 10.3 moved their parameters (core.telegram.org/bots/api-changelog).
const (
	Version100 = "10.0"
	Version102 = "10.2"
)

// Limits of the hosted service (core.telegram.org/bots/api).
const (
	maxUpload   = 50 << 20 // sendDocument
	maxPhoto    = 10 << 20 // sendPhoto
	maxDownload = 20 << 20 // getFile
	maxRawText  = 1 << 15  // bytes before entities are parsed
	maxText     = 4096
	// maxEntityBytes is about what the service accepts (tdlib/telegram-bot-api#165).
	maxEntityBytes = 9500
	maxCaption     = 1024
	maxPoll        = 50 * time.Second
)

// Config configures a [Server]. The zero value is a well-behaved server with a default bot.
type Config struct {
	// Token is the bot's token, "<id>:<secret>". Empty means [defaultToken].
	Token string
	// Username is the username of the bot. Empty means [DefaultUsername].
	Username string
	// NoPrivacyMode makes the bot get all messages of its groups. New bots have
	// privacy mode (core.telegram.org/bots/features#privacy-mode).
	NoPrivacyMode bool
	// Version is the Bot API version, for an outdated self-hosted server. Empty means the latest.
	Version string
	// SelfHosted makes the server self-hosted: it serves no files. LocalDir makes it one that was
	// started with --local: getFile writes files into this folder and returns their absolute paths
	// (github.com/tdlib/telegram-bot-api, HttpConnection.cpp and Client.cpp).
	SelfHosted bool
	LocalDir   string
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Seed makes random faults repeatable.
	Seed uint64
	// Limits enables flood control. Nil means no flood control.
	Limits *Limits
	// TLS configures TLS; see [wire.NewCertificate]. Nil means plain HTTP.
	TLS *tls.Config
	// WebhookClient delivers updates to webhooks on any host and port, for tests. If it is nil, webhooks
	// can be set with the ports and addresses that the service accepts, but nothing is delivered.
	WebhookClient *http.Client
	// WebhookRetryDelay is the first delay before an update is posted again. It doubles each time. 0 is
	// [defaultWebhookRetryDelay].
	WebhookRetryDelay time.Duration
	// RequireLength refuses requests without a Content-Length, as a gateway before the service may.
	RequireLength bool
	// Control enables the control interface over HTTP under /emulator/, without authentication.
	Control bool
	// MaxMessages bounds the stored messages per chat, MaxUpdates the queued updates. 0 means the
	// defaults.
	MaxMessages, MaxUpdates int
}

// Server is a Bot API server: its world, its queue of updates, and its interfaces. Its methods
// may be called concurrently.
type Server struct {
	token string
	life  *wire.Lifecycle
	world *world
	api   *api
	control
	controlEnabled bool // the control interface is served too
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	cfg.Token = cmp.Or(cfg.Token, defaultToken)
	cfg.Username = cmp.Or(cfg.Username, DefaultUsername)
	cfg.WebhookRetryDelay = cmp.Or(cfg.WebhookRetryDelay, defaultWebhookRetryDelay)
	cfg.MaxMessages = cmp.Or(cfg.MaxMessages, defaultMaxMessages)
	cfg.MaxUpdates = cmp.Or(cfg.MaxUpdates, defaultMaxUpdates)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	id, _, ok := strings.Cut(cfg.Token, ":")
	botID, err := strconv.ParseInt(id, 10, 64)
	if !ok || err != nil || botID <= 0 {
		return nil, errors.New("telegram emulator: token must be <id>:<secret>")
	}
	if cfg.MaxMessages < 1 || cfg.MaxUpdates < 1 {
		return nil, errors.New("telegram emulator: bounds must be positive")
	}
	w := newWorld(&cfg, User{ID: botID, IsBot: true, FirstName: "OneClaw", Username: cfg.Username})
	life := wire.NewLifecycle("telegram emulator", ErrClosed, &w.mu, slog.New(slog.DiscardHandler))
	life.TLS = cfg.TLS
	w.hub = wire.NewHub[int64, Message](life)
	faults := wire.NewFaults(life, rand.New(rand.NewPCG(cfg.Seed, 0)), refuseFault, Conflict)
	q := newQueue(&cfg, &w.mu, life, w.hub, faults)
	a := newAPI(&cfg, w, q, faults)
	return &Server{
		token: cfg.Token, life: life, world: w, api: a, controlEnabled: cfg.Control,
		control: control{&setup{w, q}, &people{w, q, cfg.NoPrivacyMode}, wire.NewObserver(w.hub, State{w, q, a.flood}), faults},
	}, nil
}

// Bot returns the bot, as getMe does.
func (s *Server) Bot() User { return s.world.bot }

// Token returns the bot's token.
func (s *Server) Token() string { return s.token }

// Start listens on a free port of 127.0.0.1, or on addr if given, and serves until
// [Server.Close]. It returns the API URL for a bot.
func (s *Server) Start(ctx context.Context, addr ...string) (string, error) {
	return s.life.Start(ctx, s, addr...)
}

// Suspend stops listening, as if the machine were off, until [Server.Resume].
func (s *Server) Suspend() error { return s.life.Suspend() }

// Resume listens again after [Server.Suspend].
func (s *Server) Resume(ctx context.Context) error { return s.life.Resume(ctx) }

// Close ends every request, including long polls and hanging ones, closes the subscriptions and
// waits for all handlers.
func (s *Server) Close() error { return s.life.Close(s.world.hub.Close) }

// ServeHTTP serves the bot, and the control interface if it is enabled.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.api.cfg.RequireLength && !wire.RequireLength(w, r) {
		return
	}
	if s.controlEnabled && strings.HasPrefix(r.URL.Path, "/emulator/") {
		s.serveControl(w, r)
		return
	}
	s.api.ServeHTTP(w, r)
}
