package slack

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/emulator/slack/delivery"
	"oneclaw/internal/emulator/wire"
)

// The app's tokens and secret, and the defaults of [Config].
const (
	DefaultBotToken      = "xoxb-1000-2000-EMULATORtestsOnly"
	DefaultAppToken      = "xapp-1-A0ONECLAW-3000-EMULATORtestsOnly"
	DefaultSigningSecret = "0123456789abcdef-emulator-only"
	DefaultTeam          = "T0ONECLAW"
	DefaultTeamName      = "Emulator"
	DefaultBotUser       = "U0BOT"
	DefaultBotName       = "oneclaw"
	DefaultAckTimeout    = 3 * time.Second
	DefaultPing          = 10 * time.Second
	DefaultMaxMessages   = 5000
	DefaultMaxEnvelopes  = 100_000
)

// Constant ids of the app.
const (
	BotID = "B0BOT"
	AppID = "A0ONECLAW"
)

// Limits of the service: of texts and blocks by docs.slack.dev/reference/block-kit and the
// page of chat.postMessage, of sockets by docs.slack.dev/apis/events-api/using-socket-mode,
// of a status by the page of assistant.threads.setStatus. That of uploads is the emulator's.
const (
	maxText      = 40_000
	maxBlocks    = 50
	maxUpload    = 64 << 20
	maxFiles     = 256 << 20 // of all stored files
	maxSockets   = 10
	maxResponses = 5 // posts to one response_url (docs.slack.dev/interactivity/handling-user-interaction)
	responseAge  = 30 * time.Minute
	statusAge    = 2 * time.Minute
)

// DefaultScopes returns the default bot scopes: of an app without the agent view. [App.Install]
// uses a manifest instead.
func DefaultScopes() []string {
	return []string{
		"app_mentions:read", "channels:history", "channels:read", "chat:write", "commands",
		"files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write",
		"mpim:history", "mpim:read", "reactions:read", "reactions:write", "team:read", "users:read",
	}
}

// DefaultRetry returns the pauses before deliveries are repeated
// (docs.slack.dev/apis/events-api, retries; assumed: the same for sockets).
func DefaultRetry() []time.Duration { return []time.Duration{0, time.Minute, 5 * time.Minute} }

// Config configures a [Server]. The zero value is a well-behaved workspace with a default app.
type Config struct {
	// Team and TeamName identify the workspace, BotUser and BotName the bot. Empty means the
	// defaults.
	Team, TeamName, BotUser, BotName string
	// Scopes are the bot token's, AppScopes the app token's. Nil means [DefaultScopes] and
	// connections:write.
	Scopes, AppScopes []string
	// Public is the server's address in responses and events, such as https://slack.test. Empty
	// means the one that it listens on.
	Public string
	// Delivery configures how events are delivered. Zero fields mean the defaults.
	Delivery
	// Limits bound how often the app may write.
	Limits
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Seed makes random faults and the choice of sockets repeatable.
	Seed uint64
	// TLS configures TLS; see [wire.Certificate]. Nil means plain HTTP.
	TLS *tls.Config
	// Control serves the control side over HTTP under /emulator/, without authentication.
	Control bool
	// MaxMessages bounds the stored messages per channel. 0 means the default.
	MaxMessages int
	// Logger gets one line per request at Debug. Nil means no log.
	Logger *slog.Logger
}

// Delivery configures how events are delivered.
type Delivery = delivery.Settings

// Limits bound how often the app may write.
type Limits struct {
	// Rate is how many messages per second each channel accepts, with bursts of Burst; the service
	// accepts about 1. 0 means no limit.
	Rate  float64
	Burst int
	// Updates is how many chat.update calls per minute all channels accept together, and as burst;
	// the service accepts 50 and more (docs.slack.dev, rate limits, tier 3). 0 means no limit.
	Updates int
}

func (cfg *Config) fill() {
	cfg.Team = cmp.Or(cfg.Team, DefaultTeam)
	cfg.TeamName = cmp.Or(cfg.TeamName, DefaultTeamName)
	cfg.BotUser = cmp.Or(cfg.BotUser, DefaultBotUser)
	cfg.BotName = cmp.Or(cfg.BotName, DefaultBotName)
	cfg.AckTimeout = cmp.Or(cfg.AckTimeout, DefaultAckTimeout)
	cfg.Ping = cmp.Or(cfg.Ping, DefaultPing)
	cfg.MaxMessages = cmp.Or(cfg.MaxMessages, DefaultMaxMessages)
	cfg.MaxEnvelopes = cmp.Or(cfg.MaxEnvelopes, DefaultMaxEnvelopes)
	if cfg.Scopes == nil {
		cfg.Scopes = DefaultScopes()
	}
	if cfg.AppScopes == nil {
		cfg.AppScopes = []string{"connections:write"}
	}
	if cfg.Retry == nil {
		cfg.Retry = DefaultRetry()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
}

func (cfg *Config) check() error {
	switch {
	case cfg.MaxMessages < 1 || cfg.MaxEnvelopes < 1:
		return errors.New("slack emulator: bounds must be positive")
	case cfg.AckTimeout < 0 || cfg.Ping < 0:
		return errors.New("slack emulator: a time to wait must not be negative")
	}
	return nil
}

// Server is a workspace. Its methods and those of its parts may be called concurrently. One lock
// guards all parts.
type Server struct {
	*People
	*Observer
	*App
	delivery.Control
	*wire.Faults[string]

	cfg   *Config // immutable
	mu    *sync.Mutex
	world *world
	line  *delivery.Line
	api   *api
	life  *wire.Lifecycle
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	cfg.fill()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Server{cfg: &cfg, mu: new(sync.Mutex)}
	s.life = wire.NewLifecycle("slack emulator", ErrClosed, s.mu, cfg.Logger)
	s.life.TLS = cfg.TLS
	chances := rand.New(rand.NewPCG(cfg.Seed, 0)) // for faults, sockets and the order of events
	hub := wire.NewHub[string, Message](s.life)
	s.Faults = wire.NewFaults(s.life, chances, refuseFault, Refuse, "socket", "hello", "envelope")
	s.world = newWorld(s.cfg, hub)
	s.App = &App{mu: s.mu, scopes: slices.Clone(cfg.Scopes)}
	s.line = delivery.New(delivery.Config{
		Settings: cfg.Delivery, AppID: AppID, Secret: DefaultSigningSecret,
		Mu: s.mu, Life: s.life, Faults: s.Faults, Chances: chances, Now: cfg.Now, Log: cfg.Logger,
		Emit: func(e delivery.TraceEvent) {
			hub.Emit(Event{Kind: e.Kind, Chat: e.Channel, Message: e.Message, Update: e.Envelope, Text: e.Text}, nil)
		},
		Changed: hub.Changed,
		Meet: func(w http.ResponseWriter, r *http.Request) bool {
			_, over := hub.Meet(s.Faults, w, r, "socket", "")
			return over
		},
		Answered: s.world.respond,
	})
	s.Control = s.line.Control()
	told := &news{cfg: s.cfg, life: s.life, world: s.world, app: s.App, line: s.line, rand: chances}
	s.People = &People{cfg: s.cfg, mu: s.mu, world: s.world, app: s.App, news: told}
	s.api = &api{
		cfg: s.cfg, mu: s.mu, world: s.world, app: s.App, news: told, line: s.line, life: s.life, hub: hub,
		faults: s.Faults, methods: methods(), flood: newFlood(cfg.Limits),
	}
	s.Observer = &Observer{mu: s.mu, hub: hub, state: State{State: s.line.State(), world: s.world, api: s.api}}
	return s, nil
}

// BotToken returns the bot's token.
func (s *Server) BotToken() string { return DefaultBotToken }

// AppToken returns the app-level token.
func (s *Server) AppToken() string { return DefaultAppToken }

// SigningSecret returns the secret that signs posted events.
func (s *Server) SigningSecret() string { return DefaultSigningSecret }

// BotUser returns the user id of the bot.
func (s *Server) BotUser() string { return s.cfg.BotUser }

// Team returns the id of the workspace.
func (s *Server) Team() string { return s.cfg.Team }

// Start listens on a free port of 127.0.0.1, or on addr if given, and serves until
// [Server.Close]. It returns the API URL for an app, which ends in /api/.
func (s *Server) Start(ctx context.Context, addr ...string) (string, error) {
	ln, err := s.life.Listen(ctx, addr...)
	if err != nil {
		return "", err
	}
	base, err := s.life.Serve(ln, s)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	s.world.files.base = cmp.Or(s.cfg.Public, base)
	s.mu.Unlock()
	return base + "/api/", nil
}

// Down stops listening, as if the machine were off, until [Server.Up].
func (s *Server) Down() error { return s.life.Down() }

// Up listens again after [Server.Down].
func (s *Server) Up(ctx context.Context) error { return s.life.Up(ctx) }

// Close ends every request and socket, closes the subscriptions and waits for everything to end.
func (s *Server) Close() error {
	err := s.life.Close(func() {
		s.line.HangUp()
		s.api.hub.Close()
	})
	s.line.CloseIdleConnections()
	return err
}

// ServeHTTP serves the app, and the control side if enabled.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.life.Enter() {
		http.Error(w, "closed", http.StatusServiceUnavailable)
		return
	}
	defer s.life.Leave()
	w.Header().Set("Date", s.cfg.Now().UTC().Format(http.TimeFormat))
	if !wire.Sized(w, r) {
		return
	}
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/api/"):
		s.api.serveMethod(w, r, strings.TrimPrefix(path, "/api/"))
	case path == socketPath:
		s.line.ServeHTTP(w, r)
	case strings.HasPrefix(path, filesPath):
		s.api.serveFile(w, r, strings.TrimPrefix(path, filesPath))
	case strings.HasPrefix(path, uploadPath):
		s.api.serveUpload(w, r, strings.TrimPrefix(path, uploadPath))
	case strings.HasPrefix(path, commandsPath):
		s.api.serveResponse(w, r)
	case s.cfg.Control && strings.HasPrefix(path, "/emulator/"):
		(&remote{s.People, s.Observer, s.Control, s.Faults}).ServeHTTP(w, r)
	case path == "/" && r.URL.Query().Has("redir"):
		serveLogin(w)
	default:
		http.Error(w, "Not Found", http.StatusNotFound)
	}
}
