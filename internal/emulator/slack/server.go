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

	"oneclaw/internal/emulator/wire"
)

// Defaults of [Config].
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
	DefaultMaxFiles      = 256 << 20
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
	maxSockets   = 10
	maxResponses = 5 // posts to one response_url (docs.slack.dev/interactivity/handling-user-interaction)
	responseAge  = 30 * time.Minute
	statusAge    = 2 * time.Minute
)

// DefaultScopes are the bot scopes of [Config] where it names none: those of an app
// without the agent view. [Server.Install] makes an app of a manifest.
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
	// BotToken, AppToken and SigningSecret are the app's. Empty means the defaults.
	BotToken, AppToken, SigningSecret string
	// Team and TeamName are the workspace's, BotUser and BotName the bot's. Empty
	// means the defaults.
	Team, TeamName, BotUser, BotName string
	// Scopes are those of the bot token, AppScopes those of the app token. Nil means
	// [DefaultScopes] and connections:write.
	Scopes, AppScopes []string
	// Public is the address of the server in what it tells, such as https://slack.test. Empty
	// means the one that it listens on.
	Public string
	// EventsURL is where events are posted, signed, instead of to sockets.
	EventsURL string
	// AckTimeout is how long an envelope may stay unacknowledged: 3 s
	// (docs.slack.dev/apis/events-api, responding to events). 0 means
	// [DefaultAckTimeout].
	AckTimeout time.Duration
	// Retry is how long after each failed delivery the next follows; after the last
	// the event is lost. Nil means [DefaultRetry].
	Retry []time.Duration
	// Ping is how often sockets are pinged. 0 means [DefaultPing].
	Ping time.Duration
	// Rate is how many messages a second each channel takes, with a burst of Burst;
	// the service takes about 1. 0 means no limit.
	Rate  float64
	Burst int
	// Updates is how many chat.update a minute all channels take together, and so many at
	// once; the service takes 50 and more (docs.slack.dev, rate limits, tier 3). 0 means
	// no limit.
	Updates int
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Seed makes faults with a probability and the choice of sockets repeatable.
	Seed uint64
	// TLS is what the server is served with; see [wire.Certificate]. Nil means plain HTTP.
	TLS *tls.Config
	// Control serves the control side over HTTP under /emulator/. It asks for no
	// token, so it is off unless set.
	Control bool
	// MaxMessages bounds the messages kept for each channel, MaxEnvelopes the
	// envelopes, MaxFiles the bytes of files. 0 means the defaults.
	MaxMessages, MaxEnvelopes, MaxFiles int
	// Logger gets one line a request at Debug. Nil means no log.
	Logger *slog.Logger
}

func (cfg *Config) fill() {
	cfg.BotToken = cmp.Or(cfg.BotToken, DefaultBotToken)
	cfg.AppToken = cmp.Or(cfg.AppToken, DefaultAppToken)
	cfg.SigningSecret = cmp.Or(cfg.SigningSecret, DefaultSigningSecret)
	cfg.Team = cmp.Or(cfg.Team, DefaultTeam)
	cfg.TeamName = cmp.Or(cfg.TeamName, DefaultTeamName)
	cfg.BotUser = cmp.Or(cfg.BotUser, DefaultBotUser)
	cfg.BotName = cmp.Or(cfg.BotName, DefaultBotName)
	cfg.AckTimeout = cmp.Or(cfg.AckTimeout, DefaultAckTimeout)
	cfg.Ping = cmp.Or(cfg.Ping, DefaultPing)
	cfg.MaxMessages = cmp.Or(cfg.MaxMessages, DefaultMaxMessages)
	cfg.MaxEnvelopes = cmp.Or(cfg.MaxEnvelopes, DefaultMaxEnvelopes)
	cfg.MaxFiles = cmp.Or(cfg.MaxFiles, DefaultMaxFiles)
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
	case !strings.HasPrefix(cfg.BotToken, "xoxb-"):
		return errors.New("slack emulator: a bot token begins with xoxb-")
	case !strings.HasPrefix(cfg.AppToken, "xapp-"):
		return errors.New("slack emulator: an app token begins with xapp-")
	case cfg.MaxMessages < 1 || cfg.MaxEnvelopes < 1 || cfg.MaxFiles < 1:
		return errors.New("slack emulator: bounds must be positive")
	case cfg.AckTimeout < 0 || cfg.Ping < 0:
		return errors.New("slack emulator: a time to wait must not be negative")
	}
	return nil
}

// Server is a workspace. All its methods may be called concurrently.
type Server struct {
	cfg     Config
	methods map[string]method
	client  *http.Client // posts events where EventsURL is set
	log     *slog.Logger

	life *wire.Lifecycle

	mu      sync.Mutex
	scopes  []string
	events  []string // those subscribed to; nil for all
	revoked bool
	world
	wires
	rand *rand.Rand // of faults and the choice of sockets
	*wire.Faults[string]
	hub  *wire.Hub[string, Message]
	cuts int
	flood
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	cfg.fill()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	chances := rand.New(rand.NewPCG(cfg.Seed, 0))
	s := &Server{
		cfg:     cfg,
		methods: methods(),
		client:  &http.Client{Timeout: cfg.AckTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 32}},
		log:     cfg.Logger,
		scopes:  slices.Clone(cfg.Scopes),
		world:   newWorld(),
		wires:   newWires(),
		rand:    chances,
		flood:   newFlood(cfg.Rate, cfg.Burst, cfg.Updates),
	}
	s.life = wire.NewLifecycle("slack emulator", ErrClosed, &s.mu, cfg.Logger)
	s.life.TLS = cfg.TLS
	s.hub = wire.NewHub[string, Message](s.life)
	s.Faults = wire.NewFaults(s.life, chances, refuseFault, Refuse, "socket", "hello", "envelope")
	bot := User{ID: cfg.BotUser, Name: cfg.BotName, RealName: cfg.BotName, Bot: true}
	s.users[bot.ID] = &bot
	return s, nil
}

// BotToken returns the bot's token.
func (s *Server) BotToken() string { return s.cfg.BotToken }

// AppToken returns the app-level token.
func (s *Server) AppToken() string { return s.cfg.AppToken }

// SigningSecret returns the secret that posted events are signed with.
func (s *Server) SigningSecret() string { return s.cfg.SigningSecret }

// BotUser returns the user id of the bot.
func (s *Server) BotUser() string { return s.cfg.BotUser }

// Team returns the id of the workspace.
func (s *Server) Team() string { return s.cfg.Team }

// SetScopes changes the scopes of the bot token, as installing the app again does.
func (s *Server) SetScopes(scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scopes = slices.Clone(scopes)
}

// Revoke makes both tokens invalid, as removing the app does.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = true
}

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
	s.files.base = cmp.Or(s.cfg.Public, base)
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
		s.hangUp()
		s.hub.Close()
	})
	s.client.CloseIdleConnections()
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
		s.serveMethod(w, r, strings.TrimPrefix(path, "/api/"))
	case path == socketPath:
		s.serveSocket(w, r)
	case strings.HasPrefix(path, filesPath):
		s.serveFile(w, r, strings.TrimPrefix(path, filesPath))
	case strings.HasPrefix(path, uploadPath):
		s.serveUpload(w, r, strings.TrimPrefix(path, uploadPath))
	case strings.HasPrefix(path, commandsPath):
		s.serveResponse(w, r)
	case s.cfg.Control && strings.HasPrefix(path, "/emulator/"):
		s.serveControl(w, r)
	case path == "/" && r.URL.Query().Has("redir"):
		serveLogin(w)
	default:
		http.Error(w, "Not Found", http.StatusNotFound)
	}
}
