package slack

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
	"oneclaw/internal/retry"
	"oneclaw/slack/shared"
	"oneclaw/slack/surface"
	"oneclaw/storage"
)

// Name is the Chat.Platform of Slack's chats.
const Name = "slack"

// Defaults of [Config].
const (
	DefaultAPIURL      = "https://slack.com/api/"
	DefaultPingTimeout = 30 * time.Second
	DefaultCallTimeout = 30 * time.Second
)

// Config says which app to be, and where.
type Config struct {
	Settings

	// KV keeps up to when messages have arrived, so that those that came while the
	// program did not run are fetched when it does, and where commands take answers. Nil
	// means that nothing is kept. See [Settings.Share] for several processes on one.
	KV storage.KV
	// HTTPClient carries the requests. Redirects are not followed in any case. Nil
	// means a client of its own, which Run closes when it ends.
	HTTPClient *http.Client
	// Logger is where the platform reports. Nil means no log.
	Logger *slog.Logger
	// PingTimeout is how long a socket may be silent before it counts as dead. 0
	// means [DefaultPingTimeout].
	PingTimeout time.Duration
	// CallTimeout bounds every call of the Web API. 0 means [DefaultCallTimeout].
	CallTimeout time.Duration
}

const maxCached = 4096

// Platform is Slack. Its methods may be called concurrently; Run at most once at a
// time. Its only goroutines are those of Run, which waits for them.
type Platform struct {
	*previews
	api         *client
	log         *slog.Logger
	pingTimeout time.Duration
	health      health
	statuses    *surface.Statuses
	people      *cache.Cache[string, person]
	threads     *cache.Cache[chats.Chat, thread]
	// ignored are messages of threads that were not for the bot when they came, by channel and id.
	ignored    *cache.Cache[string, bool]
	responses  *shared.Invitations
	channels   []string
	reach      *shared.Reach
	leads      func() bool
	surface    *surface.Surface
	told       sync.Map // reasons that the log has told
	signatures *signatures
	me         atomic.Pointer[self]
	receiver   atomic.Pointer[receiver] // of the Run whose requests are served
}

var (
	_ chats.Editor          = (*Platform)(nil)
	_ chats.Previewer       = (*Platform)(nil)
	_ chats.TypingIndicator = (*Platform)(nil)
	_ chats.Acknowledger    = (*Platform)(nil)
	_ chats.WaitIndicator   = (*Platform)(nil)
	_ chats.EphemeralSender = (*Platform)(nil)
	_ chats.FileFetcher     = (*Platform)(nil)
	_ chats.ThreadReader    = (*Platform)(nil)
	_ chats.UserNamer       = (*Platform)(nil)
	_ chats.FileSender      = (*Platform)(nil)
	_ chats.AdminChecker    = (*Platform)(nil)
	_ chats.HealthReporter  = (*Platform)(nil)
	_ chats.Pinger          = (*Platform)(nil)
	_ chats.CommandPrefixer = (*Platform)(nil)
	_ chats.UserIDChecker   = (*Platform)(nil)
)

// New checks the configuration. It sends nothing.
func New(cfg Config) (*Platform, error) {
	bot, app := strings.TrimSpace(string(cfg.BotToken)), strings.TrimSpace(string(cfg.AppToken))
	secret := strings.TrimSpace(string(cfg.SigningSecret))
	switch {
	case !strings.HasPrefix(bot, "xoxb-"):
		return nil, errors.New("slack: SLACK_BOT_TOKEN is not a bot token: want xoxb-…, from OAuth & Permissions of the app")
	case secret == "" && app == "":
		return nil, errors.New("slack: set SLACK_APP_TOKEN (xapp-…) for Socket Mode, or SLACK_SIGNING_SECRET for HTTP events")
	case secret == "" && !strings.HasPrefix(app, "xapp-"):
		return nil, errors.New("slack: SLACK_APP_TOKEN is not an app-level token: want xapp-…, from Basic Information of the app")
	case cfg.PingTimeout < 0 || cfg.CallTimeout < 0:
		return nil, errors.New("slack: a time to wait must not be negative")
	}
	base, err := url.Parse(strings.TrimRight(cmp.Or(cfg.APIURL, DefaultAPIURL), "/") + "/")
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("slack: SLACK_API_URL is no address: want one such as " + DefaultAPIURL)
	}
	channels, err := checkChannels(cfg.Channels)
	if err != nil {
		return nil, err
	}
	p := &Platform{
		channels:    channels,
		api:         newClient(bot, app, secret, base, cfg.HTTPClient, cmp.Or(cfg.CallTimeout, DefaultCallTimeout)),
		log:         cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		leads:       cfg.leads,
		people:      cache.New[string, person](maxCached),
		threads:     cache.New[chats.Chat, thread](maxCached),
		ignored:     cache.New[string, bool](maxCached),
		pingTimeout: cmp.Or(cfg.PingTimeout, DefaultPingTimeout),
	}
	if p.responses, err = shared.NewInvitations(cfg.KV, bot, &p.api.clock); err != nil {
		return nil, err
	}
	p.previews = &previews{platform: p, room: retry.NewSpare(previewRate, previewBurst)}
	p.surface = surface.New(surface.Config{
		Call: p.api.call, Code: codeOf, Log: p.log,
		Blocks: layOut(p.Render),
		Busy:   func(method string) bool { return p.api.paces.Busy(request{method: method}.key()) },
	})
	p.statuses = surface.NewStatuses()
	p.reach = shared.NewReach(cfg.KV, &p.api.clock)
	p.signatures = newSignatures(secret, p.log)
	p.api.Watch(cfg.tap)
	return p, nil
}

// Name returns [Name].
func (p *Platform) Name() string { return Name }

// RepliesInThreads implements [chats.ThreadReplier].
func (p *Platform) RepliesInThreads() {}

// CommandPrefix implements [bridge.Speller]: Slack keeps texts that begin with a slash for
// itself, and refuses those it does not know.
func (p *Platform) CommandPrefix() string { return "!" }
