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

// platformName is the Chat.Platform of Slack's chats.
const platformName = "slack"

// Defaults of [config].
const (
	defaultAPIURL      = "https://slack.com/api/"
	defaultPingTimeout = 30 * time.Second
	defaultCallTimeout = 30 * time.Second
)

// config configures a [platform].
type config struct {
	Settings

	// kv stores up to which time messages have arrived, so that missed messages are fetched after a
	// restart, and the rest of the state that package shared describes. Nil means that nothing is stored.
	// See [Settings.Share] for several processes with one store.
	kv storage.KV
	// httpClient sends the requests. Only downloads follow redirects, within Slack. Nil means a client
	// that only this platform uses; Run closes its idle connections at the end.
	httpClient *http.Client
	// logger logs for the operator. Nil means no log.
	logger *slog.Logger
	// pingTimeout is how long a socket may be silent before it counts as dead. 0 means
	// [defaultPingTimeout].
	pingTimeout time.Duration
	// callTimeout bounds every call of the Web API, except that an upload has at least 5 minutes. 0 means
	// [defaultCallTimeout].
	callTimeout time.Duration
}

const maxCached = 4096

// platform connects to Slack. Its methods may be called concurrently, but only one Run at a time. Its
// only goroutines are those of Run, which waits for them.
type platform struct {
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
	_ chats.Editor           = (*platform)(nil)
	_ chats.Previewer        = (*platform)(nil)
	_ chats.TypingIndicator  = (*platform)(nil)
	_ chats.Acknowledger     = (*platform)(nil)
	_ chats.WaitIndicator    = (*platform)(nil)
	_ chats.EphemeralSender  = (*platform)(nil)
	_ chats.FileFetcher      = (*platform)(nil)
	_ chats.FileEditor       = (*platform)(nil)
	_ chats.ThreadReader     = (*platform)(nil)
	_ chats.UserNamer        = (*platform)(nil)
	_ chats.ChatNamer        = (*platform)(nil)
	_ chats.UserZoner        = (*platform)(nil)
	_ chats.FileSender       = (*platform)(nil)
	_ chats.VoiceSender      = (*platform)(nil)
	_ chats.AdminChecker     = (*platform)(nil)
	_ chats.ReactionReporter = (*platform)(nil)
	_ chats.HealthReporter   = (*platform)(nil)
	_ chats.Pinger           = (*platform)(nil)
	_ chats.CommandPrefixer  = (*platform)(nil)
	_ chats.UserIDChecker    = (*platform)(nil)
)

// newPlatform checks the configuration. It sends nothing.
func newPlatform(cfg config) (*platform, error) {
	bot, app := strings.TrimSpace(string(cfg.BotToken)), strings.TrimSpace(string(cfg.AppToken))
	secret := strings.TrimSpace(string(cfg.SigningSecret))
	switch {
	case !strings.HasPrefix(bot, "xoxb-"):
		return nil, errors.New("slack: SLACK_BOT_TOKEN is not a bot token: want xoxb-…, from OAuth & Permissions of the app")
	case secret == "" && app == "":
		return nil, errors.New("slack: set SLACK_APP_TOKEN (xapp-…) for Socket Mode, or SLACK_SIGNING_SECRET for HTTP events")
	case secret == "" && !strings.HasPrefix(app, "xapp-"):
		return nil, errors.New("slack: SLACK_APP_TOKEN is not an app-level token: want xapp-…, from Basic Information of the app")
	case cfg.pingTimeout < 0 || cfg.callTimeout < 0:
		return nil, errors.New("slack: a time to wait must not be negative")
	}
	base, err := url.Parse(strings.TrimRight(cmp.Or(cfg.APIURL, defaultAPIURL), "/") + "/")
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("slack: SLACK_API_URL is no address: want one such as " + defaultAPIURL)
	}
	channels, err := checkChannels(cfg.Channels)
	if err != nil {
		return nil, err
	}
	p := &platform{
		channels:    channels,
		api:         newClient(bot, app, secret, base, cfg.httpClient, cmp.Or(cfg.callTimeout, defaultCallTimeout)),
		log:         cmp.Or(cfg.logger, slog.New(slog.DiscardHandler)),
		isLeader:    cfg.isLeader,
		people:      cache.New[string, person](maxCached),
		places:      cache.New[string, namedPlace](maxCached),
		threads:     cache.New[chats.Chat, thread](maxCached),
		ignored:     cache.New[string, bool](maxCached),
		mentions:    cache.New[string, bool](maxCached),
		views:       cache.New[string, appContext](maxCached),
		shownViews:  cache.New[chats.Chat, string](maxCached),
		pingTimeout: cmp.Or(cfg.pingTimeout, defaultPingTimeout),
	}
	if p.invitations, err = shared.NewInvitations(cfg.kv, bot, &p.api.clock); err != nil {
		return nil, err
	}
	p.previews = &previews{platform: p, limiter: retry.NewOptionalLimiter(previewRate, previewBurst)}
	p.surface = surface.New(surface.Config{
		Call: p.api.call, Code: errorCode, Log: p.log,
		RenderBlocks: blockRenderer(p.Render),
		Busy:         func(method string) bool { return p.api.pacer.Busy(apiCall{method: method}.key()) },
	})
	p.statuses = surface.NewStatuses()
	p.progress = shared.NewProgress(cfg.kv, &p.api.clock)
	p.verifier = newRequestVerifier(secret, p.log)
	p.api.SetTap(cfg.tap)
	return p, nil
}

// Name returns [platformName].
func (p *platform) Name() string { return platformName }

// RepliesInThreads implements [chats.ThreadReplier].
func (p *platform) RepliesInThreads() {}

// EditsFiles implements [chats.FileEditor]: people can remove a file from a message, and the event of a mention
// may lack the files of its message.
func (p *platform) EditsFiles() {}

// CommandPrefix implements [chats.CommandPrefixer]: Slack does not deliver texts that begin with a
// slash, and rejects unknown commands.
func (p *platform) CommandPrefix() string { return "!" }
