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

// Ids of the app that are always the same.
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
	maxFiles     = 256 << 20 // of all files that are kept
	maxSockets   = 10
	maxResponses = 5 // posts to one response_url (docs.slack.dev/interactivity/handling-user-interaction)
	responseAge  = 30 * time.Minute
	statusAge    = 2 * time.Minute
)

// DefaultScopes are the bot scopes of [Config] where it names none: those of an app
// without the agent view. [App.Install] makes an app of a manifest.
func DefaultScopes() []string {
	return []string{
		"app_mentions:read", "channels:history", "channels:read", "chat:write", "commands",
		"files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write",
		"mpim:history", "mpim:read", "reactions:read", "reactions:write", "team:read", "users:read",
	}
}

// DefaultRetry is when the service sends an event again that was not acknowledged
// (docs.slack.dev/apis/events-api, retries; that sockets get them alike is assumed).
func DefaultRetry() []time.Duration { return []time.Duration{0, time.Minute, 5 * time.Minute} }

// Config says how a [Server] behaves. The zero value is a well-behaved workspace
// with a default app.
type Config struct {
	// Team and TeamName are the workspace's, BotUser and BotName the bot's. Empty
	// means the defaults.
	Team, TeamName, BotUser, BotName string
	// Scopes are those of the bot token, AppScopes those of the app token. Nil means
	// [DefaultScopes] and connections:write.
	Scopes, AppScopes []string
	// Public is the address of the server in what it tells, such as https://slack.test. Empty
	// means the one that it listens on.
	Public string
	// Delivery says how the app is reached. What is 0 or nil of it means the defaults.
	Delivery
	// Limits bound how often the app may write.
	Limits
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Seed makes faults with a probability and the choice of sockets repeatable.
	Seed uint64
	// TLS is what the server is served with; see [wire.Certificate]. Nil means plain HTTP.
	TLS *tls.Config
	// Control serves the control side over HTTP under /emulator/. It asks for no
	// token, so it is off unless set.
	Control bool
	// MaxMessages bounds the messages kept for each channel. 0 means the default.
	MaxMessages int
	// Logger gets one line a request at Debug. Nil means no log.
	Logger *slog.Logger
}

// Delivery says how the app is reached.
type Delivery = delivery.Settings

// Limits bound how often the app may write.
type Limits struct {
	// Rate is how many messages a second each channel takes, with a burst of Burst;
	// the service takes about 1. 0 means no limit.
	Rate  float64
	Burst int
	// Updates is how many chat.update a minute all channels take together, and so many at
	// once; the service takes 50 and more (docs.slack.dev, rate limits, tier 3). 0 means
	// no limit.
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

// Server is a workspace. All its methods, its own and those of its parts, may be called
// concurrently. One lock guards all parts.
type Server struct {
	*People
	*Observer
	*App
	delivery.Control
	*wire.Faults[string]

	cfg   *Config // does not change
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
	chances := rand.New(rand.NewPCG(cfg.Seed, 0)) // of faults, sockets and the order of events
	hub := wire.NewHub[string, Message](s.life)
	s.Faults = wire.NewFaults(s.life, chances, refuseFault, Refuse, "socket", "hello", "envelope")
	s.world = newWorld(s.cfg, hub)
	s.App = &App{mu: s.mu, scopes: slices.Clone(cfg.Scopes)}
	s.line = delivery.New(delivery.Config{
		Settings: cfg.Delivery, AppID: AppID, Secret: DefaultSigningSecret,
		Mu: s.mu, Life: s.life, Faults: s.Faults, Chances: chances, Now: cfg.Now, Log: cfg.Logger,
		Emit: func(e delivery.Event) {
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

// SigningSecret returns the secret that posted events are signed with.
func (s *Server) SigningSecret() string { return DefaultSigningSecret }

// BotUser returns the user id of the bot.
func (s *Server) BotUser() string { return s.cfg.BotUser }

// Team returns the id of the workspace.
func (s *Server) Team() string { return s.cfg.Team }

// Start listens on a free port of 127.0.0.1, or on addr where given, and serves
// until [Server.Close]. It returns the address to give an app as its API URL; it
// ends in /api/.
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

// Down has nobody listen any more, as if the machine were off, until [Server.Up].
func (s *Server) Down() error { return s.life.Down() }

// Up listens again where [Server.Down] has ended it.
func (s *Server) Up(ctx context.Context) error { return s.life.Up(ctx) }

// Close ends every request and socket, closes the subscriptions and waits until
// nothing runs any more.
func (s *Server) Close() error {
	err := s.life.Close(func() {
		s.line.HangUp()
		s.api.hub.Close()
	})
	s.line.CloseIdleConnections()
	return err
}

// ServeHTTP answers the app, and the control side where it is on.
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
