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

// The app's tokens and signing secret, and the defaults of [Config].
const (
	DefaultBotToken      = "xoxb-1000-2000-EMULATORtestsOnly"
	DefaultAppToken      = "xapp-1-A0ONECLAW-3000-EMULATORtestsOnly"
	DefaultSigningSecret = "0123456789abcdef-emulator-only"
	defaultTeam          = "T0ONECLAW"
	defaultTeamName      = "Emulator"
	defaultBotUser       = "U0BOT"
	defaultBotName       = "oneclaw"
	defaultAckTimeout    = 3 * time.Second
	defaultPingInterval  = 10 * time.Second
	defaultMaxMessages   = 5000
	defaultMaxEnvelopes  = 100_000
)

// Constant ids of the app.
const (
	BotID = "B0BOT"
	appID = "A0ONECLAW"
)

// Limits of the service. Those of texts and blocks are from docs.slack.dev/reference/block-kit and the
// page of chat.postMessage, those of sockets from docs.slack.dev/apis/events-api/using-socket-mode,
// that of a status from the page of assistant.threads.setStatus. maxUpload is the emulator's own.
const (
	maxText        = 40_000
	maxBlocks      = 50
	maxAttachments = 100
	maxUpload      = 64 << 20
	maxFiles       = 256 << 20 // total size of the stored files
	maxSockets     = 10
	maxResponses   = 5 // posts to one response_url (docs.slack.dev/interactivity/handling-user-interaction)
	maxResponseAge = 30 * time.Minute
	maxStatusAge   = 2 * time.Minute
)

// DefaultScopes returns the default scopes of the bot, which are those of an app without the agent view.
// [App.Install] uses those of a manifest instead.
func DefaultScopes() []string {
	return []string{
		"app_mentions:read", "channels:history", "channels:read", "chat:write", "commands",
		"files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write",
		"mpim:history", "mpim:read", "reactions:read", "reactions:write", "team:read", "usergroups:read", "users:read",
	}
}

// defaultRetryDelays returns the delays before repeated deliveries
// (docs.slack.dev/apis/events-api, section on retries; assumed: the same over sockets).
func defaultRetryDelays() []time.Duration { return []time.Duration{0, time.Minute, 5 * time.Minute} }

// Config configures a [Server]. The zero value is a well-behaved workspace with a default app.
type Config struct {
	// Team and TeamName identify the workspace, BotUser and BotName the bot. Empty means the
	// defaults.
	Team, TeamName, BotUser, BotName string
	// Organization is the id of the organization (Enterprise Grid) for which the app is installed. Empty means
	// that it is installed in the workspace alone.
	Organization string
	// Scopes are those of the bot token, AppScopes those of the app token. Nil means [DefaultScopes] and
	// connections:write.
	Scopes, AppScopes []string
	// PublicURL is the server's URL in responses and events, such as https://slack.test. Empty
	// means the URL at which the server listens.
	PublicURL string
	// Delivery configures how events are delivered. Zero fields mean the defaults.
	Delivery
	// Limits bound the rate at which the app may write.
	Limits
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Seed makes random faults and the choice of sockets repeatable.
	Seed uint64
	// TLS configures TLS; see [wire.NewCertificate]. Nil means plain HTTP.
	TLS *tls.Config
	// RequireLength refuses requests without a Content-Length, as a gateway before the service may.
	RequireLength bool
	// Control enables the control interface over HTTP under /emulator/, without authentication.
	Control bool
	// MaxMessages bounds the stored messages per channel. 0 means the default.
	MaxMessages int
	// Logger gets one line per request at level Debug. Nil means no log.
	Logger *slog.Logger
}

// Delivery configures how events are delivered.
type Delivery = delivery.Settings

// Limits bound the rate at which the app may write.
type Limits struct {
	// MessagesPerSecond is the rate that each channel accepts, with bursts of Burst; the service
	// accepts about 1. 0 means no limit.
	MessagesPerSecond float64
	Burst             int
	// EditsPerMinute is the rate and burst of chat.update that all channels accept together. The
	// service accepts 50 and more (docs.slack.dev, rate limits, tier 3). 0 means no limit.
	EditsPerMinute int
}

func (cfg *Config) setDefaults() {
	cfg.Team = cmp.Or(cfg.Team, defaultTeam)
	cfg.TeamName = cmp.Or(cfg.TeamName, defaultTeamName)
	cfg.BotUser = cmp.Or(cfg.BotUser, defaultBotUser)
	cfg.BotName = cmp.Or(cfg.BotName, defaultBotName)
	cfg.AckTimeout = cmp.Or(cfg.AckTimeout, defaultAckTimeout)
	cfg.PingInterval = cmp.Or(cfg.PingInterval, defaultPingInterval)
	cfg.MaxMessages = cmp.Or(cfg.MaxMessages, defaultMaxMessages)
	cfg.MaxEnvelopes = cmp.Or(cfg.MaxEnvelopes, defaultMaxEnvelopes)
	if cfg.Scopes == nil {
		cfg.Scopes = DefaultScopes()
	}
	if cfg.AppScopes == nil {
		cfg.AppScopes = []string{"connections:write"}
	}
	if cfg.RetryDelays == nil {
		cfg.RetryDelays = defaultRetryDelays()
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
	case cfg.AckTimeout < 0 || cfg.PingInterval < 0:
		return errors.New("slack emulator: timeouts must not be negative")
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
	cfg.setDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Server{cfg: &cfg, mu: new(sync.Mutex)}
	s.life = wire.NewLifecycle("slack emulator", errClosed, s.mu, cfg.Logger)
	s.life.TLS = cfg.TLS
	chances := rand.New(rand.NewPCG(cfg.Seed, 0)) // for faults, sockets and the order of events
	hub := wire.NewHub[string, Message](s.life)
	s.Faults = wire.NewFaults(s.life, chances, refuseFault, "", "socket", "hello", "envelope")
	s.world = newWorld(s.cfg, hub)
	s.App = &App{mu: s.mu, scopes: slices.Clone(cfg.Scopes)}
	s.line = delivery.New(delivery.Config{
		Settings: cfg.Delivery, AppID: appID, Secret: DefaultSigningSecret,
		Mu: s.mu, Life: s.life, Faults: s.Faults, Rand: chances, Now: cfg.Now, Log: cfg.Logger,
		Emit: func(e delivery.TraceEvent) {
			hub.Emit(event{Kind: e.Kind, Chat: e.Channel, Message: e.Message, Update: e.Envelope, Text: e.Text}, nil)
		},
		Wake: hub.Wake,
		Intercept: func(w http.ResponseWriter, r *http.Request) bool {
			_, over := hub.Intercept(s.Faults, w, r, "socket", "")
			return over
		},
		OnCommandAnswer: s.world.showCommandAnswer,
	})
	s.Control = s.line.Control()
	told := &notifier{cfg: s.cfg, life: s.life, world: s.world, app: s.App, line: s.line, rand: chances}
	s.People = &People{cfg: s.cfg, mu: s.mu, world: s.world, app: s.App, notifier: told}
	s.api = &api{
		cfg: s.cfg, mu: s.mu, world: s.world, app: s.App, notifier: told, line: s.line, life: s.life, hub: hub,
		faults: s.Faults, methods: methods(), flood: newRateLimits(cfg.Limits),
	}
	s.Observer = wire.NewObserver(hub, State{State: s.line.State(), world: s.world, api: s.api})
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
	base, err := s.life.Start(ctx, s, addr...)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	s.world.files.baseURL = cmp.Or(s.cfg.PublicURL, base)
	s.mu.Unlock()
	return base + "/api/", nil
}

// Suspend stops listening, as if the machine were off, until [Server.Resume].
func (s *Server) Suspend() error { return s.life.Suspend() }

// Resume listens again after [Server.Suspend].
func (s *Server) Resume(ctx context.Context) error { return s.life.Resume(ctx) }

// Close ends every request and socket, closes the subscriptions and waits for all goroutines.
func (s *Server) Close() error {
	err := s.life.Close(func() {
		s.line.Stop()
		s.api.hub.Close()
	})
	s.line.CloseIdleConnections()
	return err
}

// ServeHTTP serves the app, and the control interface if it is enabled.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.cfg.Now().UTC().Format(http.TimeFormat))
	if s.cfg.RequireLength && !wire.RequireLength(w, r) {
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
		(&remoteControl{s.People, s.Observer, s.Control, s.Faults}).ServeHTTP(w, r)
	case path == "/" && r.URL.Query().Has("redir"):
		serveLogin(w)
	default:
		http.Error(w, "Not Found", http.StatusNotFound)
	}
}
