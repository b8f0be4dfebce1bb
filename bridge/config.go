package bridge

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Config is what a [Bridge] is made of.
type Config struct {
	// Store keeps jobs, sessions and conversations.
	Store storage.Store
	// Turns say how messages are answered.
	Turns turn.Settings
	// Platforms deliver messages and take answers. Their names differ.
	Platforms []chats.Platform
	// Access says who may talk to the bot, besides those who were let in from a chat.
	// Its zero value lets no user in.
	Access access.Access
	// Commands are understood besides the bridge's own.
	Commands []Command
	// Approve says whether a call needs the approval of a person. It is given the
	// arguments that the tool would be given. Nil means that none does.
	Approve func(call toolgroups.Call, tool toolgroups.Tool) interact.Policy
	// Cards handle the presses of cards, by [Card.Kind].
	Cards map[string]interact.Handler
	// DataDir holds the folder of workspaces.
	DataDir string
	// Redact, if not nil, masks secrets in everything that is sent to a chat, in what
	// tools return to the model, and in what the model says. What people write is left
	// as it is.
	Redact func(text string) string
	// RedactCards takes the place of Redact on cards. It must mask nothing but values
	// that the bot knows as secrets: the approver has to see everything else. Nil
	// means Redact.
	RedactCards func(text string) string
	// Hooks are what the rest of the program adds.
	Hooks Hooks
	// Limits bound what is done.
	Limits Limits
	// Sharing says how the store is shared with other processes; not at all where it is zero.
	Sharing queue.Sharing
	// Logger, if nil, discards.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Zone is where people read times; nil means UTC.
	Zone func() *time.Location
}

// Hooks are what the rest of the program adds. Each may be nil.
type Hooks struct {
	// Report, if not nil, sends administrators a text, alone with the bot, once under its key, and
	// returns to how many.
	Report func(ctx context.Context, key, text string) (int, error)
	// Refused makes the card with which a turn is answered for which there is
	// no budget; its text has to say so. The error is that of the turn. Tasks and
	// platforms without buttons get the notice of the error alone.
	Refused func(ctx context.Context, scope toolgroups.Scope, failure error) (interact.Card, error)
	// Savings says in a sentence for /tools what loading tools when they are
	// needed has saved in a chat so far.
	Savings func(ctx context.Context, scope toolgroups.Scope) (string, error)
	// TaskDone is told what became of a submission before that is closed.
	// It may be told again after a crash or an error.
	TaskDone func(ctx context.Context, result TaskResult) error
	// Files keeps the workspaces in the store, where several processes share that.
	Files queue.Files
	// Moved is told that a chat goes on under another id, before messages
	// from there are answered. It is told while no turn of either runs, and again after
	// an error or a crash.
	Moved func(ctx context.Context, from, to chats.Chat) error
	// Forget takes away what the rest of the program keeps of a user, as platform:id, who wants
	// to be forgotten, and of their direct chat. It may be told again after an error or a crash.
	Forget func(ctx context.Context, user string, direct chats.Chat) error
	// Erased is told that something is removed that a user wants to be gone.
	Erased func(ctx context.Context) error
	// Measure counts.
	Measure queue.Counter
	// Trace follows jobs.
	Trace queue.Tracer
	// Judged is asked what a chat has to be told once an answer was judged there; it is empty
	// where there is nothing. told is called when that is certain to be sent.
	Judged func(ctx context.Context, chat chats.Chat) (text string, told func(context.Context) error, err error)
}

// Limits bound what is done. The zero value of each means its default.
type Limits struct {
	// Allowance is what the owner reads about people before letting them in: what they may
	// use a day.
	Allowance string
	// AuditAge is how long it is kept who did what. 0 means [audit.DefaultAge].
	AuditAge time.Duration
	// HistoryAge is how long what was said is kept. 0 means without an end.
	HistoryAge time.Duration
	// MaxWaiting bounds the messages of one chat that wait, and the commands. 0 means
	// [DefaultMaxWaiting].
	MaxWaiting int
	// MaxWaitingMember bounds the messages and commands of one user that wait in shared
	// chats. 0 means [DefaultMaxWaitingMember].
	MaxWaitingMember int
	// MaxTurns bounds the answers that are made at the same time, and the sends. 0 means
	// [DefaultMaxTurns].
	MaxTurns int
	// MaxParts bounds the messages of one answer. What is longer is sent as a file besides,
	// where the platform takes files. 0 means [DefaultMaxParts], a negative value no bound.
	MaxParts int
	// WorkspaceQuota is how many bytes the files of one owner may take, and DiskReserve how
	// many bytes of the disk tools leave free. 0 means the defaults of internal/workspace.
	WorkspaceQuota, DiskReserve int64
	// RetryFor is how long a job that fails is tried again at least before it is given up, and
	// how long a pause between tries is at most. 0 means [DefaultRetryFor].
	RetryFor time.Duration
	// ApprovalTimeout is how long a call waits for a decision. 0 means
	// [interact.ApprovalTimeout].
	ApprovalTimeout time.Duration
	// DrainTimeout is how long running turns may go on when the bridge is stopped.
	// What is not finished then goes on after the next start. 0 means
	// [DefaultDrainTimeout], a negative value no time at all.
	DrainTimeout time.Duration
}

// Defaults of [Limits].
const (
	DefaultMaxWaiting       = 100
	DefaultMaxWaitingMember = 20
	DefaultMaxTurns         = 1000
	DefaultMaxParts         = 10
	DefaultRetryFor         = time.Minute
	DefaultDrainTimeout     = 10 * time.Second
)

func (l Limits) complete() Limits {
	l.AuditAge = cmp.Or(l.AuditAge, audit.DefaultAge)
	l.MaxWaiting = cmp.Or(l.MaxWaiting, DefaultMaxWaiting)
	l.MaxWaitingMember = cmp.Or(l.MaxWaitingMember, DefaultMaxWaitingMember)
	l.MaxTurns = cmp.Or(l.MaxTurns, DefaultMaxTurns)
	l.MaxParts = cmp.Or(l.MaxParts, DefaultMaxParts)
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
