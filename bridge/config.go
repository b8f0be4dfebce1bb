package bridge

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Config configures a [Bridge].
type Config struct {
	// Store keeps jobs, sessions and conversations.
	Store storage.Store
	// Turns configures turns.
	Turns turn.Settings
	// Platforms deliver messages and send answers. Their names differ.
	Platforms []chats.Platform
	// Access lists who may talk to the bot, in addition to those who were admitted in a chat. Its zero
	// value admits no user.
	Access access.Access
	// Commands are added to the bridge's own.
	Commands []Command
	// Approve returns whether a call needs a user's approval. It gets the arguments that the tool would
	// get. Nil means that no call does.
	Approve func(call toolgroups.Call, tool toolgroups.Tool) interact.Policy
	// Cards handle presses, by [Card.Kind].
	Cards map[string]interact.Handler
	// DataDir holds the folder of workspaces.
	DataDir string
	// Redact, if not nil, masks secrets in everything that is sent to a chat, in the results of tools,
	// and in what the model says. Messages of users are left unchanged.
	Redact func(text string) string
	// RedactCards replaces Redact for cards. It must mask only values that the bot knows as secrets:
	// the approver has to see everything else. Nil means Redact.
	RedactCards func(text string) string
	// Hooks connect the rest of the program.
	Hooks Hooks
	// Limits bound the bridge's work.
	Limits Limits
	// Sharing configures how the store is shared with other processes; the zero value means not at all.
	Sharing queue.Sharing
	// Logger, if nil, discards.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Zone is the time zone of displayed times; nil means UTC.
	Zone func() *time.Location
}

// Hooks connect the rest of the program. Each may be nil.
type Hooks struct {
	// Report sends administrators a text, in direct chats, once under its key, and returns to how many.
	Report func(ctx context.Context, key, text string) (int, error)
	// Refused makes the card that answers a turn for which there is no budget; its text has to say so.
	// failure is the turn's error. Tasks, and platforms without buttons, get only the error's notice.
	Refused func(ctx context.Context, scope toolgroups.Scope, failure error) (interact.Card, error)
	// Savings returns a sentence for /tools: what loading tools on demand has saved in a chat so far.
	Savings func(ctx context.Context, scope toolgroups.Scope) (string, error)
	// TaskDone is called with the result of a submission before that is closed. It may be called again
	// after a crash or an error.
	TaskDone func(ctx context.Context, result TaskResult) error
	// Files keeps the workspaces in the store, if several processes share it.
	Files queue.Files
	// Moved is called when a chat continues under another id, before messages from there are answered.
	// No turn runs in either meanwhile. It is called again after an error or a crash.
	Moved func(ctx context.Context, from, to chats.Chat) error
	// Forget deletes what the rest of the program stores about a user, platform:id, who wants to be
	// forgotten, and about their direct chat. It may be called again after an error or a crash.
	Forget func(ctx context.Context, user string, direct chats.Chat) error
	// Erased is called when something that a user wants deleted was removed.
	Erased func(ctx context.Context) error
	// Measure counts events.
	Measure queue.Counter
	// Trace traces jobs.
	Trace queue.Tracer
	// Judged returns the text, if any, for a chat in which an answer was rated for the first time. told
	// is called once that text is certain to be sent.
	Judged func(ctx context.Context, chat chats.Chat) (text string, told func(context.Context) error, err error)
}

// Limits bound the bridge's work. The zero value of each means its default.
type Limits struct {
	Concurrency
	Retention
	outbox.AnswerLimits
	// Allowance tells the owner, before they admit a user, what that user may use a day.
	Allowance string
	// WorkspaceQuota bounds the files of one owner in bytes, DiskReserve is how many bytes of the disk
	// tools leave free. 0 means the defaults of internal/workspace.
	WorkspaceQuota, DiskReserve int64
	// RetryFor is the minimum time for which a failing job is retried, and the maximum pause between
	// attempts. 0 means [DefaultRetryFor].
	RetryFor time.Duration
	// ApprovalTimeout is how long a call waits for a decision. 0 means
	// [interact.ApprovalTimeout].
	ApprovalTimeout time.Duration
	// DrainTimeout is how long running turns may go on when the bridge is stopped. Unfinished turns
	// continue after the next start. 0 means [DefaultDrainTimeout], a negative value no time at all.
	DrainTimeout time.Duration
}

// Defaults of [Limits].
const (
	DefaultRetryFor     = time.Minute
	DefaultDrainTimeout = 10 * time.Second
)

func (l Limits) complete() Limits {
	l.Concurrency, l.Retention = l.Concurrency.complete(), l.Retention.complete()
	l.RetryFor = cmp.Or(l.RetryFor, DefaultRetryFor)
	l.ApprovalTimeout = cmp.Or(l.ApprovalTimeout, interact.ApprovalTimeout)
	l.DrainTimeout = cmp.Or(l.DrainTimeout, DefaultDrainTimeout)
	return l
}

func (cfg Config) complete() Config {
	cfg.Limits = cfg.Limits.complete()
	if cfg.Zone == nil {
		cfg.Zone = func() *time.Location { return time.UTC }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Redact == nil {
		cfg.Redact = func(text string) string { return text }
	}
	if cfg.Hooks.Measure == nil {
		cfg.Hooks.Measure = func(string, queue.Metric) {}
	}
	if cfg.RedactCards == nil {
		cfg.RedactCards = cfg.Redact
	}
	return cfg
}
