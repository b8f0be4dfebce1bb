// Package turn answers messages: it passes a conversation to the agent, and stores each message of a
// turn before the agent acts on it.
package turn

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/cache"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Defaults of [Settings].
const (
	DefaultWindowTokens = 96_000
	DefaultTimeout      = 15 * time.Minute
)

// Agent answers turns. *[agent.Agent] is one.
type Agent interface {
	// Run yields each message that becomes part of the conversation before it acts on it; an error is
	// yielded alone and last.
	Run(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error]
}

// Purpose is what a turn is for: each may have a model of its own.
type Purpose string

// The purposes of turns.
const (
	// ForMessage answers a message with the chat's model.
	ForMessage Purpose = ""
	// ForDeep answers a message that asks for the strong model.
	ForDeep Purpose = "deep"
	// ForSchedule runs the task of a schedule.
	ForSchedule Purpose = "schedules"
	// ForWebhook runs the task of a webhook.
	ForWebhook Purpose = "webhooks"
)

// Profile configures one turn.
type Profile struct {
	// Prompt is the static part of the system prompt; Tail follows it.
	Prompt, Tail string
	// Model answers; nil means the agent's own. Summarizer is as in [agent.Turn].
	Model, Summarizer agent.Model
	// Temperature, Effort and MaxRounds are as in [agent.Turn].
	Temperature *float64
	Effort      string
	MaxRounds   int
}

// Options are the settings of turns.
type Options struct {
	// PictureTokens bounds the cost of the pictures of a conversation that are sent again with each
	// request. Beyond that, the oldest are hidden after an answer. 0 means [DefaultPictureTokens]; with
	// a negative value each is sent for one answer only.
	PictureTokens int `yaml:"picture_tokens" env:"ONECLAW_PICTURE_TOKENS"`
	// Acknowledge adds a reaction to messages whose turn has to wait, if the platform can.
	Acknowledge bool `yaml:"reactions" env:"ONECLAW_REACTIONS"`
}

// Settings configure turns.
type Settings struct {
	Options
	// Agent runs turns.
	Agent Agent
	// Tools returns the present registry.
	Tools func() *toolgroups.Registry
	// Router decides which tools are in the tools array of a request. Nil means the core and the groups
	// that the conversation has loaded.
	Router toolgroups.Router
	// Profile returns the profile of a turn, at its beginning. Nil means the zero value for all.
	Profile func(ctx context.Context, scope toolgroups.Scope, purpose Purpose) (Profile, error)
	// Recall, if not nil, returns what the memory search finds for a message, beyond what the persona
	// shows; it is stored with the message. An error is logged and ignored.
	Recall func(ctx context.Context, scope toolgroups.Scope, text string) (string, error)
	// BeforeCompact, if not nil, is called with the messages that a summary is about to cover, so that
	// the memory can keep something. It may be called again for them after a crash, and its failure
	// does not stop the summary.
	BeforeCompact func(ctx context.Context, scope toolgroups.Scope, messages []agent.Message) error
	// Transcribe returns the text of a user's recording. A permanent failure is a
	// *[TranscriptionError]; after another error the user may try again. Nil means that recordings are
	// not transcribed.
	Transcribe func(ctx context.Context, scope toolgroups.Scope, r Recording) (string, error)
	// SeparateTurns gives messages that come during a turn a turn of their own, instead of adding them
	// to the running one.
	SeparateTurns bool
	// RedactPartial, if not nil, masks secrets in an unfinished answer. It enables previews, on
	// platforms that can show them.
	RedactPartial func(text string) string
	// Observe, if not nil, receives events of turns: best effort, concurrently.
	Observe func(chats.Chat, agent.Event)
	// WindowTokens bounds the part of a conversation that is read for a turn, estimated at four bytes a
	// token. 0 means [DefaultWindowTokens].
	WindowTokens int
	// Timeout bounds one answer. 0 means [DefaultTimeout].
	Timeout time.Duration
}

// Config configures a [Runner]. All fields are required.
type Config struct {
	Settings
	// Platforms are all platforms, by name.
	Platforms map[string]chats.Platform
	// Safe reports whether certainly no other process owns the job now. Nil if this one works alone.
	Safe func(j *queue.Run) bool
	// Redact masks secrets in what goes out.
	Redact func(text string) string
	// FormatCommands rewrites the commands in a text for a platform.
	FormatCommands func(platform, text string) string
	// Files keeps the workspaces. Nil means that no other process uses this disk's.
	Files  queue.Files
	Log    *slog.Logger
	Now    func() time.Time
	Store  storage.Store
	Jobs   queue.Store
	Queue  Queue
	Sender Sender
	Gate   Gate
	Asker  Asker
	Host   Host
	Keeper Keeper
	// Watcher provides observers of turns.
	Watcher Watcher
}

// Sender makes the parts of answers.
type Sender interface {
	// Prepare makes the parts of an answer. With recorded, the caller writes the job next, and the
	// record marks the first part as being sent.
	Prepare(j *queue.Run, answer string, recorded bool)
}

// Queue adds waiting messages to running turns, and gives turns their slots.
type Queue interface {
	// Join passes the messages that can become part of a job to join, which makes them part of it.
	Join(ctx context.Context, j *queue.Run, join func(some []*queue.Run) (joined, gone []*queue.Run, err error)) error
	// Listen calls added when such a message comes, until the job ends or stop is called.
	Listen(j *queue.Run, added func(partial bool)) (stop func())
	// AwaitSlot waits until a job has a slot again, or ctx ends.
	AwaitSlot(ctx context.Context, j *queue.Run)
}

// Position is the position in a conversation. Only the goroutine of its turn may call it.
type Position interface {
	// ReplyPosition returns the position of the reply whose calls are being resolved.
	ReplyPosition() string
}

// Gate decides on tool calls.
type Gate interface {
	// Decide returns whether a call of a turn may run.
	Decide(ctx context.Context, j *queue.Run, at Position, call toolgroups.Call, tool toolgroups.Tool) (agent.Decision, error)
	// Note adds to a job the decisions that were made while it waited, and reports whether it can
	// continue.
	Note(ctx context.Context, j *queue.Run) (bool, error)
}

// Asker asks users the questions of running tools.
type Asker interface {
	// For returns the [agent.Turn.Ask] of a turn; nil if no user attends it.
	For(j *queue.Run, at Position) func(context.Context, toolgroups.Call, toolgroups.Question, agent.InTurn) (toolgroups.Answer, error)
	// Ended is called when the result of a call is recorded.
	Ended(ctx context.Context, j *queue.Run, call string) error
}

// Host gives turns access to the bridge.
type Host interface {
	// Scope returns on whose behalf the tools of a turn run; log is the log of its conversation.
	Scope(j *queue.Run, log string) (toolgroups.Scope, error)
	// Refused answers a turn for which there is no budget; the notice says so.
	Refused(ctx context.Context, j *queue.Run, scope toolgroups.Scope, failure error, notice string) (string, error)
	// Failed returns the answer of a failed turn with the text for its sender; again says that asking
	// once more may help.
	Failed(ctx context.Context, j *queue.Run, told string, again bool) string
	// Report tells administrators the remedy for a failure: the sender, if they are one, else all
	// administrators. It returns the sentence for the chat.
	Report(ctx context.Context, j *queue.Run, failure, remedy string) string
	// Administrator returns who can change settings: by name for users who know them.
	Administrator(user string) string
	// Heard returns what was said in the chat of a job before it, not to the bot, after the message
	// with the given id: the latest messages, the oldest first.
	Heard(ctx context.Context, j *queue.Run, after string) []chats.Quoted
	// PostLine posts a line of Markdown as a reply to the message under, or into the job's chat if that
	// is empty: once for a key. When it returns nil, the line is certain to be sent.
	PostLine(ctx context.Context, key string, j *queue.Run, under, line string) error
}

// Keeper looks after the store.
type Keeper interface {
	// Mend makes a damaged record a dead letter, and reports whether it did so now.
	Mend(ctx context.Context, d *queue.DamagedError, chat chats.Chat) (bool, error)
	// Failing reports whether the last write failed.
	Failing() bool
}

// Watcher provides observers of turns.
type Watcher interface {
	// Watch returns an observer of the turn of a job, which may be called concurrently; a function that
	// prevents its preview, and returns false if something is shown already; and one to call at the end
	// of the turn: the job then holds its preview.
	Watch(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func())
}

// Runner runs turns.
type Runner struct {
	cfg   Config
	Cache *conversation.Cache
	// unstored holds messages that could not be stored, by the keys of their jobs.
	unstored *cache.Cache[string, unstored]
	// unheard holds transcripts that could not be stored, by the keys of their jobs and their sounds.
	unheard *cache.Cache[string, receipts.Transcript]
}

// New returns a runner that is ready.
func New(cfg Config) *Runner {
	cfg.WindowTokens = cmp.Or(cfg.WindowTokens, DefaultWindowTokens)
	cfg.PictureTokens = cmp.Or(cfg.PictureTokens, DefaultPictureTokens)
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	return &Runner{
		cfg: cfg, Cache: conversation.NewCache(cfg.Store, cfg.WindowTokens),
		unstored: cache.New[string, unstored](maxUnstored), unheard: cache.New[string, receipts.Transcript](maxUnstored),
	}
}
