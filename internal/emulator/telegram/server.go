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
	"sync"
	"time"

	"oneclaw/internal/emulator/wire"
)

// Defaults of [Config].
const (
	DefaultToken       = "123456:EMULATOR-token-for-tests-only"
	DefaultUsername    = "oneclaw_bot"
	DefaultName        = "OneClaw"
	DefaultMaxMessages = 5000
	DefaultMaxUpdates  = 100_000
	DefaultMaxFiles    = 256 << 20
	// DefaultWebhookRetry is from WebhookActor.cpp.
	DefaultWebhookRetry = time.Second
)

// Versions of the Bot API that differ in what matters here: before 10.2 there are no
// ephemeral messages, and 10.3 reads their parameters elsewhere
// (core.telegram.org/bots/api-changelog).
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
	maxCaption  = 1024
	maxPoll     = 50 * time.Second
)

// Config says how a [Server] behaves. The zero value is a well-behaved server with
// a default bot.
type Config struct {
	// Token is the bot's token, "<id>:<secret>". Empty means [DefaultToken].
	Token string
	// Username and Name are the bot's. Empty means the defaults.
	Username, Name string
	// ReadsAll switches privacy mode off: the bot gets all messages of its groups. BotFather
	// has it on for every new bot (core.telegram.org/bots/features#privacy-mode).
	ReadsAll bool
	// Version is of the Bot API, where it is a server of one's own that nobody has brought up
	// to date. Empty means the latest.
	Version string
	// SelfHosted makes it a server of one's own, which hands out no files. Local is the
	// folder of one that was started with --local: getFile puts files there and tells their
	// absolute paths (github.com/tdlib/telegram-bot-api, HttpConnection.cpp and Client.cpp).
	SelfHosted bool
	Local      string
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Seed makes faults with a probability repeatable.
	Seed uint64
	// Limits turns on flood control. Nil means none.
	Limits *Limits
	// TLS is what the server is served with; see [wire.Certificate]. Nil means plain HTTP.
	TLS *tls.Config
	// Webhooks carries updates to a webhook, on whatever port and host that is: tests have
	// it on this machine. Nil means that webhooks are set, to the ports and addresses that
	// the service takes, and nothing is delivered.
	Webhooks *http.Client
	// WebhookRetry is the first pause before an update is posted again; each further one is
	// double. 0 means [DefaultWebhookRetry].
	WebhookRetry time.Duration
	// Control serves the control side over HTTP under /emulator/. It asks for no
	// token, so it is off unless set.
	Control bool
	// MaxMessages bounds the messages kept for each chat, MaxUpdates the updates
	// that wait, MaxFiles the bytes of files kept. 0 means the defaults.
	MaxMessages, MaxUpdates, MaxFiles int
	// Logger gets one line a request at Debug. Nil means no log.
	Logger *slog.Logger
}

// Server is a Bot API server. All its methods may be called concurrently.
type Server struct {
	cfg     Config
	bot     User
	methods map[string]method
	log     *slog.Logger

	life *wire.Lifecycle

	mu sync.Mutex
	world
	queue
	*wire.Faults[int64]
	hub   *wire.Hub[int64, Message]
	cuts  int
	flood flood
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	cfg.Token = cmp.Or(cfg.Token, DefaultToken)
	cfg.Username = cmp.Or(cfg.Username, DefaultUsername)
	cfg.Name = cmp.Or(cfg.Name, DefaultName)
	cfg.WebhookRetry = cmp.Or(cfg.WebhookRetry, DefaultWebhookRetry)
	cfg.MaxMessages = cmp.Or(cfg.MaxMessages, DefaultMaxMessages)
	cfg.MaxUpdates = cmp.Or(cfg.MaxUpdates, DefaultMaxUpdates)
	cfg.MaxFiles = cmp.Or(cfg.MaxFiles, DefaultMaxFiles)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	id, _, ok := strings.Cut(cfg.Token, ":")
	botID, err := strconv.ParseInt(id, 10, 64)
	if !ok || err != nil || botID <= 0 {
		return nil, errors.New("telegram emulator: token must be <id>:<secret>")
	}
	if cfg.MaxMessages < 1 || cfg.MaxUpdates < 1 || cfg.MaxFiles < 1 {
		return nil, errors.New("telegram emulator: bounds must be positive")
	}
	s := &Server{
		cfg:   cfg,
		bot:   User{ID: botID, IsBot: true, FirstName: cfg.Name, Username: cfg.Username},
		log:   cfg.Logger,
		world: newWorld(),
		queue: newQueue(),
		flood: newFlood(cfg.Limits),
	}
	s.life = wire.NewLifecycle("telegram emulator", ErrClosed, &s.mu, cfg.Logger)
	s.life.TLS = cfg.TLS
	s.hub = wire.NewHub[int64, Message](s.life)
	s.Faults = wire.NewFaults(s.life, rand.New(rand.NewPCG(cfg.Seed, 0)), refuse, Conflict)
	s.methods = methods()
	if cfg.Version != Version100 {
		s.methods["editephemeralmessagetext"] = editEphemeralMessageText
	}
	return s, nil
}

// Bot returns the bot as getMe does.
func (s *Server) Bot() User { return s.bot }

// Token returns the bot's token.
func (s *Server) Token() string { return s.cfg.Token }

// Start listens on a free port of 127.0.0.1, or on addr where given, and serves
// until [Server.Close]. It returns the address to give a bot as its API URL.
func (s *Server) Start(ctx context.Context, addr ...string) (string, error) {
	ln, err := s.life.Listen(ctx, addr...)
	if err != nil {
		return "", err
	}
	return s.life.Serve(ln, s)
}

// Down has nobody listen any more, as if the machine were off, until [Server.Up].
func (s *Server) Down() error { return s.life.Down() }

// Up listens again where [Server.Down] has ended it.
func (s *Server) Up(ctx context.Context) error { return s.life.Up(ctx) }

// Close ends every request, also long polls and hanging ones, closes the
// subscriptions and waits until nothing runs any more.
func (s *Server) Close() error { return s.life.Close(s.hub.Close) }

// ServeHTTP answers the bot, and the control side where it is on.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.life.Enter() {
		http.Error(w, "closed", http.StatusServiceUnavailable)
		return
	}
	defer s.life.Leave()
	if !wire.Sized(w, r) {
		return
	}
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/file/bot"):
		s.serveFile(w, r, strings.TrimPrefix(path, "/file/bot"))
	case strings.HasPrefix(path, "/bot"):
		token, name, ok := strings.Cut(strings.TrimPrefix(path, "/bot"), "/")
		if !ok || name == "" {
			writeError(w, errorf(404, "Not Found")) // Client.cpp
			return
		}
		if err := s.authorize(token); err != nil {
			writeError(w, err)
			return
		}
		s.serveMethod(w, r, strings.ToLower(name))
	case s.cfg.Control && strings.HasPrefix(path, "/emulator/"):
		s.serveControl(w, r)
	default:
		writeError(w, errorf(404, "Not Found")) // Client.cpp
	}
}

// authorize refuses every token but the bot's.
func (s *Server) authorize(token string) *apiError {
	switch {
	case token == s.cfg.Token:
		return nil
	case len(token) > 80, !strings.Contains(token, ":"):
		return errorf(401, "Unauthorized: invalid token specified") // ClientManager.cpp
	}
	return errorf(401, "Unauthorized") // Client.cpp
}
