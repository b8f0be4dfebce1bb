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

// Config configures a [Platform].
type Config struct {
	Settings

	// KV stores up to which time messages have arrived, so that missed messages are fetched after a
	// restart, and the rest of the state that package shared describes. Nil means that nothing is stored.
	// See [Settings.Share] for several processes with one store.
	KV storage.KV
	// HTTPClient sends the requests. Only downloads follow redirects, within Slack. Nil means a client
	// that only this Platform uses; Run closes its idle connections at the end.
	HTTPClient *http.Client
	// Logger logs for the operator. Nil means no log.
	Logger *slog.Logger
	// PingTimeout is how long a socket may be silent before it counts as dead. 0 means
	// [DefaultPingTimeout].
	PingTimeout time.Duration
	// CallTimeout bounds every call of the Web API, except that an upload has at least 5 minutes. 0 means
	// [DefaultCallTimeout].
	CallTimeout time.Duration
}

const maxCached = 4096

// Platform connects to Slack. Its methods may be called concurrently, but only one Run at a time. Its
// only goroutines are those of Run, which waits for them.
type Platform struct {
	*previews
	api         *client
	log         *slog.Logger
	pingTimeout time.Duration
	health      health
	statuses    *surface.Statuses
	people      *cache.Cache[string, person]
	places      *cache.Cache[string, namedPlace] // channels and user groups
	threads     *cache.Cache[chats.Chat, thread]
	// ignored has messages in threads that were not for the bot when they arrived, by channel and id.
	ignored *cache.Cache[string, bool]
	// mentions has messages that mention the bot, by channel and id: true if all of one has arrived.
	mentions *cache.Cache[string, bool]
	// views has what users look at, shownViews what their last message in a thread came with.
	views         *cache.Cache[string, appContext]
	shownViews    *cache.Cache[chats.Chat, string]
	invitations   *shared.Invitations
	channels      []string
	progress      *shared.Progress
	isLeader      func() bool // nil if no other process serves the bot
	surface       *surface.Surface
	loggedReasons sync.Map // why conversations cannot be read, as far as it was logged
	verifier      *requestVerifier
	me            atomic.Pointer[identity]
	receiver      atomic.Pointer[receiver] // the active Run
}

var (
	_ chats.Editor          = (*Platform)(nil)
	_ chats.Previewer       = (*Platform)(nil)
	_ chats.TypingIndicator = (*Platform)(nil)
	_ chats.Acknowledger    = (*Platform)(nil)
	_ chats.WaitIndicator   = (*Platform)(nil)
	_ chats.EphemeralSender = (*Platform)(nil)
	_ chats.FileFetcher     = (*Platform)(nil)
	_ chats.FileEditor      = (*Platform)(nil)
	_ chats.ThreadReader    = (*Platform)(nil)
	_ chats.UserNamer       = (*Platform)(nil)
	_ chats.FileSender      = (*Platform)(nil)
	_ chats.VoiceSender     = (*Platform)(nil)
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
		isLeader:    cfg.isLeader,
		people:      cache.New[string, person](maxCached),
		places:      cache.New[string, namedPlace](maxCached),
		threads:     cache.New[chats.Chat, thread](maxCached),
		ignored:     cache.New[string, bool](maxCached),
		mentions:    cache.New[string, bool](maxCached),
		views:       cache.New[string, appContext](maxCached),
		shownViews:  cache.New[chats.Chat, string](maxCached),
		pingTimeout: cmp.Or(cfg.PingTimeout, DefaultPingTimeout),
	}
	if p.invitations, err = shared.NewInvitations(cfg.KV, bot, &p.api.clock); err != nil {
		return nil, err
	}
	p.previews = &previews{platform: p, limiter: retry.NewOptionalLimiter(previewRate, previewBurst)}
	p.surface = surface.New(surface.Config{
		Call: p.api.call, Code: errorCode, Log: p.log,
		RenderBlocks: blockRenderer(p.Render),
		Busy:         func(method string) bool { return p.api.pacer.Busy(apiCall{method: method}.key()) },
	})
	p.statuses = surface.NewStatuses()
	p.progress = shared.NewProgress(cfg.KV, &p.api.clock)
	p.verifier = newRequestVerifier(secret, p.log)
	p.api.SetTap(cfg.tap)
	return p, nil
}

// Name returns [Name].
func (p *Platform) Name() string { return Name }

// RepliesInThreads implements [chats.ThreadReplier].
func (p *Platform) RepliesInThreads() {}

// EditsFiles implements [chats.FileEditor]: people can remove a file from a message, and the event of a mention
// may lack the files of its message.
func (p *Platform) EditsFiles() {}

// CommandPrefix implements [chats.CommandPrefixer]: Slack does not deliver texts that begin with a
// slash, and rejects unknown commands.
func (p *Platform) CommandPrefix() string { return "!" }
