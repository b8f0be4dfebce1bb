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
	"oneclaw/bridge/receipts"
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
	// Access lists the users who may talk to the bot, in addition to those admitted in a chat. Its zero
	// value admits no user.
	Access access.Access
	// Commands are added to the bridge's own.
	Commands []Command
	// ApprovalPolicy returns whether a call needs a user's approval. The call has the arguments that the
	// tool would get. Nil means that no call needs approval.
	ApprovalPolicy func(call toolgroups.Call, tool toolgroups.Tool) interact.Policy
	// ApprovalHosts are the hosts about whose addresses no call asks; *.example.com stands for those below.
	ApprovalHosts []string
	// CardHandlers handle button presses, by card kind.
	CardHandlers map[string]interact.Handler
	// DataDir holds the folder of workspaces.
	DataDir string
	// Redact, if not nil, masks secrets in everything that is sent to a chat, in the results of tools,
	// and in the model's text. Messages from users are left unchanged.
	Redact func(text string) string
	// RedactCards replaces Redact for cards. It must mask only values that the bot knows as secrets:
	// the approver has to see everything else. Nil means Redact.
	RedactCards func(text string) string
	// Hooks are callbacks into the rest of the program.
	Hooks Hooks
	// Limits bound the bridge's work.
	Limits Limits
	// Sharing configures how the store is shared with other processes. The zero value means that it is
	// not shared.
	Sharing queue.Sharing
	// Logger receives the log; nil discards it.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Zone returns the time zone of displayed times; nil means UTC.
	Zone func() *time.Location
}

// Hooks are callbacks into the rest of the program. Each may be nil.
type Hooks struct {
	// Report sends a text to administrators in direct chats, once per key, and returns their number.
	Report func(ctx context.Context, key, text string) (int, error)
	// RefusalCard makes the card that answers a turn that has no budget; its text has to say so.
	// failure is the turn's error. Tasks, and platforms without buttons, get only the error's notice.
	RefusalCard func(ctx context.Context, scope toolgroups.Scope, failure error) (interact.Card, error)
	// CommandFor returns the command that a text stands for at this moment, such as a code that a sign-in waits
	// for, which the model must not see; empty for others. Nil means that there are none.
	CommandFor func(ctx context.Context, m chats.Message) (string, error)
	// Savings returns a sentence for /tools about the savings from loading tools on demand in a chat.
	Savings func(ctx context.Context, scope toolgroups.Scope) (string, error)
	// TaskStands reports whether a submission that has not begun may still begin: what started it, as its trigger
	// says, was neither removed nor changed since. Nil means that all may.
	TaskStands func(ctx context.Context, owner, key string, from receipts.Trigger) (bool, error)
	// OnTaskDone is called with the result of a submission before its job is closed. It may be called
	// again after a crash or an error.
	OnTaskDone func(ctx context.Context, result TaskResult) error
	// Files keeps the workspaces in the store, if several processes share it.
	Files queue.FileStore
	// OnChatMoved is called when a chat gets a new id, before messages under the new id are answered.
	// No turn runs under either id meanwhile. It is called again after an error or a crash.
	OnChatMoved func(ctx context.Context, from, to chats.Chat) error
	// Prune deletes from the rest of the program what is too old. One process calls it, at the start and every
	// hour.
	Prune func(ctx context.Context) error
	// Forget deletes all data about a user (platform:id) and their direct chat from the rest of the
	// program, after /forget. It may be called again after an error or a crash.
	Forget func(ctx context.Context, user string, direct chats.Chat) error
	// OnRemoved is called with a user (platform:id) whom an administrator has removed. It may be called again after an
	// error or a crash.
	OnRemoved func(ctx context.Context, user string) error
	// OnErased is called after an erasure that a user requested, and before a pruning erases messages
	// because of their age.
	OnErased func(ctx context.Context) error
	// Measure counts events.
	Measure queue.Counter
	// Tracer traces jobs.
	Tracer queue.Tracer
}

// Limits bound the bridge's work. The zero value of each means its default.
type Limits struct {
	Concurrency
	Retention
	outbox.AnswerLimits
	// AllowanceText says how much an admitted user may use per day. The owner sees it when admitting.
	AllowanceText string
	// WorkspaceQuota bounds the files of one owner, in bytes. DiskReserve is the number of bytes that
	// tools leave free on the disk. 0 means the defaults of internal/workspace.
	WorkspaceQuota, DiskReserve int64
	// RetryFor is the minimum time for which a failing job is retried, and the maximum pause between
	// attempts. 0 means [defaultRetryFor].
	RetryFor time.Duration
	// ApprovalTimeout is how long a call waits for a decision. 0 means
	// [interact.ApprovalTimeout].
	ApprovalTimeout time.Duration
	// DrainTimeout is how long running turns may go on when the bridge is stopped. Unfinished turns
	// continue after the next start. 0 means [DefaultDrainTimeout], a negative value means not to wait.
	DrainTimeout time.Duration
}

// Defaults of [Limits].
const (
	defaultRetryFor     = time.Minute
	DefaultDrainTimeout = 10 * time.Second
)

func (l Limits) withDefaults() Limits {
	l.Concurrency, l.Retention = l.Concurrency.withDefaults(), l.Retention.withDefaults()
	l.RetryFor = cmp.Or(l.RetryFor, defaultRetryFor)
	l.ApprovalTimeout = cmp.Or(l.ApprovalTimeout, interact.ApprovalTimeout)
	l.DrainTimeout = cmp.Or(l.DrainTimeout, DefaultDrainTimeout)
	return l
}

func (cfg Config) withDefaults() Config {
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Zone == nil {
		cfg.Zone = func() *time.Location { return time.UTC }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Redact == nil {
		cfg.Redact = func(text string) string { return text }
	}
	if cfg.Hooks.Prune == nil {
		cfg.Hooks.Prune = func(context.Context) error { return nil }
	}
	if cfg.Hooks.Measure == nil {
		cfg.Hooks.Measure = func(string, queue.Metric) {}
	}
	if cfg.RedactCards == nil {
		cfg.RedactCards = cfg.Redact
	}
	return cfg
}
