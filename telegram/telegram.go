package telegram

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// platformName is the Chat.Platform of Telegram's chats.
const platformName = "telegram"

// Defaults of [config].
const (
	defaultAPIURL       = "https://api.telegram.org"
	defaultPollTimeout  = 45 * time.Second
	defaultConflictWait = 5 * time.Second
	defaultCallTimeout  = 30 * time.Second
)

// maxPollTimeout bounds the timeout of getUpdates.
const maxPollTimeout = 50 * time.Second

var tokenPattern = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)

// config configures a [platform].
type config struct {
	Settings

	// kv stores which albums and long texts in groups are for the bot, and for a minute the items of
	// albums that may still turn out to be: another process may get the next item. Nil means that all
	// this is kept only in memory.
	kv storage.KV
	// httpClient sends the requests. It should set no timeout of its own that is shorter than
	// pollTimeout. Redirects are never followed. Nil means a client that only this platform uses; Run
	// closes its idle connections at the end.
	httpClient *http.Client
	// logger logs for the operator. Nil means no log.
	logger *slog.Logger
	// pollTimeout is how long the server waits for an update before it answers without one: whole
	// seconds, at most 50. 0 means [defaultPollTimeout].
	pollTimeout time.Duration
	// conflictWait is the pause after the server reports that another process polls with this token. 0
	// means [defaultConflictWait]. A newer poll ends the older one, so the poll of a crashed bot keeps
	// no other process out.
	conflictWait time.Duration
	// callTimeout bounds every other call, except that an upload has at least 5 minutes, and the download
	// of a file 2 minutes. 0 means [defaultCallTimeout].
	callTimeout time.Duration
}

const (
	// maxForums bounds the cache of forums.
	maxForums = 1024
	// maxDisplaced bounds the cache of messages outside of their topic.
	maxDisplaced = 1024
)

// platform connects to Telegram. Its methods may be called concurrently, but only one Run at a time.
// Its only goroutines are those of Run, which waits for them.
type platform struct {
	api            *client
	log            *slog.Logger
	pollTimeout    time.Duration
	pollMargin     time.Duration
	conflictWait   time.Duration
	readClocks     clockReader
	health         health
	admins         *cache.Cache[adminKey, bool]
	titles         *cache.Cache[string, string]
	forums         *cache.Cache[int64, bool]
	displaced      *cache.Cache[messageKey, bool] // sent to the chat because their topic was gone
	pacer          *pacer
	previewLimiter *retry.OptionalLimiter
	finishLimiter  *retry.OptionalLimiter // for the final edits of previews
	albums         albumStore
	hook           hook
	knowsEphemeral atomic.Pointer[bool] // whether the server supports ephemeral messages; nil if not asked yet
	// commands are the commands that need no bot name after them in groups.
	commands atomic.Pointer[map[string]bool]
}

var (
	_ chats.Editor            = (*platform)(nil)
	_ chats.Previewer         = (*platform)(nil)
	_ chats.EphemeralSender   = (*platform)(nil)
	_ chats.TypingIndicator   = (*platform)(nil)
	_ chats.Acknowledger      = (*platform)(nil)
	_ chats.FileFetcher       = (*platform)(nil)
	_ chats.FileSender        = (*platform)(nil)
	_ chats.FileEditor        = (*platform)(nil)
	_ chats.VoiceSender       = (*platform)(nil)
	_ chats.AdminChecker      = (*platform)(nil)
	_ chats.ReactionReporter  = (*platform)(nil)
	_ chats.ChatSender        = (*platform)(nil)
	_ chats.ChatNamer         = (*platform)(nil)
	_ chats.CommandLister     = (*platform)(nil)
	_ chats.HealthReporter    = (*platform)(nil)
	_ chats.Pinger            = (*platform)(nil)
	_ chats.ExclusiveReceiver = (*platform)(nil)
	_ chats.UserIDChecker     = (*platform)(nil)
)

// newPlatform checks the configuration. It sends nothing.
func newPlatform(cfg config) (*platform, error) {
	token := strings.TrimSpace(string(cfg.Token))
	if token == "" {
		return nil, errors.New("telegram: no token: set TELEGRAM_BOT_TOKEN to the one from BotFather")
	}
	if !tokenPattern.MatchString(token) {
		return nil, errors.New("telegram: TELEGRAM_BOT_TOKEN is not a token: want digits, a colon, and letters, as BotFather shows it")
	}
	base, err := url.Parse(strings.TrimRight(cmp.Or(cfg.APIURL, defaultAPIURL), "/"))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("telegram: TELEGRAM_API_URL is no address: want one such as " + defaultAPIURL)
	}
	poll := cmp.Or(cfg.pollTimeout, defaultPollTimeout)
	if poll < time.Second || poll > maxPollTimeout || poll%time.Second != 0 {
		return nil, fmt.Errorf("telegram: poll timeout %v: want whole seconds from 1s to %v", poll, maxPollTimeout)
	}
	if cfg.conflictWait < 0 || cfg.callTimeout < 0 {
		return nil, errors.New("telegram: a time to wait must not be negative")
	}
	p := &platform{
		api:            newClient(token, base.String(), cfg.httpClient, cmp.Or(cfg.callTimeout, defaultCallTimeout)),
		log:            cmp.Or(cfg.logger, slog.New(slog.DiscardHandler)),
		pollTimeout:    poll,
		pollMargin:     defaultPollMargin,
		readClocks:     newClockReader(),
		conflictWait:   cmp.Or(cfg.conflictWait, defaultConflictWait),
		pacer:          &pacer{limits: retry.NewPacer(maxHold), refused: map[string]time.Time{}},
		previewLimiter: retry.NewOptionalLimiter(previewRate, previewBurst),
		finishLimiter:  retry.NewOptionalLimiter(endRate, endBurst),
		admins:         cache.New[adminKey, bool](maxAdmins),
		titles:         cache.New[string, string](maxTitles),
		forums:         cache.New[int64, bool](maxForums),
		displaced:      cache.New[messageKey, bool](maxDisplaced),
		albums:         newAlbumStore(cfg.kv),
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("telegram: %w", err)
	}
	if cfg.Webhook {
		if err := p.hook.configure(token, cfg.public); err != nil {
			return nil, err
		}
	}
	p.api.SetTap(cfg.tap)
	p.commands.Store(&map[string]bool{})
	return p, nil
}

// Name returns [platformName].
func (p *platform) Name() string { return platformName }

// EditsFiles implements [chats.FileEditor].
func (p *platform) EditsFiles() {}

// ReceivesExclusively implements [chats.ExclusiveReceiver]: of two pollers, Telegram refuses one.
// Posted updates may reach any process.
func (p *platform) ReceivesExclusively() bool { return p.hook.address == "" }

// userID matches the id of a user.
var userID = regexp.MustCompile(`^[1-9][0-9]{0,15}$`)

// serviceUsers are the accounts that Telegram shows as the sender of its own notices, of messages by
// anonymous administrators of a group, and of messages by channels.
var serviceUsers = []string{"777000", "1087968824", "136817688"}

// IsUserID implements [chats.UserIDChecker].
func (p *platform) IsUserID(id string) bool {
	return userID.MatchString(id) && !slices.Contains(serviceUsers, id)
}
