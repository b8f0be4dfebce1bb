// Package turn answers messages: it shows the agent a conversation, and stores each message
// of a turn before the agent acts on it.
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
	// Run yields each message that becomes part of the conversation before it acts on
	// it; an error is yielded alone and last.
	Run(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error]
}

// Profile is what a turn is answered with.
type Profile struct {
	// Prompt is the static part of the system prompt; Tail stands behind it.
	Prompt, Tail string
	// Model answers; nil means the agent's own.
	Model agent.Model
	// Temperature, Effort and MaxRounds are those of [agent.Turn].
	Temperature *float64
	Effort      string
	MaxRounds   int
}

// Settings say how messages are answered.
type Settings struct {
	// Agent answers.
	Agent Agent
	// Tools returns the present registry.
	Tools func() *toolgroups.Registry
	// Router decides which tools stand in the tools array of a request. Nil means the
	// core and the groups that the conversation has loaded.
	Router toolgroups.Router
	// Profile says what a turn is answered with. It is asked at the beginning of each
	// turn. Nil means the zero value for all.
	Profile func(ctx context.Context, scope toolgroups.Scope) (Profile, error)
	// Recall, if not nil, finds what the memory has about a message, beyond what the
	// persona shows; it is stored with the message. An error is logged and ignored.
	Recall func(ctx context.Context, scope toolgroups.Scope, text string) (string, error)
	// BeforeCompact, if not nil, is given the messages that a summary is about to stand
	// for: the memory's chance to keep what it wants. It may be given them again after a
	// crash, and what it cannot do does not stop the summary.
	BeforeCompact func(ctx context.Context, scope toolgroups.Scope, messages []agent.Message) error
	// Transcribe writes a recording of a user down. What cannot be written down is an *[TranscriptionError]; after
	// another error its sender may try again. Nil means that recordings are not heard.
	Transcribe func(ctx context.Context, scope toolgroups.Scope, r Recording) (string, error)
	// SeparateTurns has what is written while a turn runs wait for a turn of its own, instead of
	// becoming part of the one that runs.
	SeparateTurns bool
	// Acknowledge puts a sign on messages whose turn has to wait, where the platform can.
	Acknowledge bool
	// RedactPartial, if not nil, masks secrets in an answer that is still being made. It is shown
	// meanwhile then, where the platform can.
	RedactPartial func(text string) string
	// Observe, if not nil, is told what happens in turns: best effort, concurrently.
	Observe func(chats.Chat, agent.Event)
	// WindowTokens bounds the part of a conversation that is read for a turn, by the
	// estimate of four bytes a token. 0 means [DefaultWindowTokens].
	WindowTokens int
	// PictureTokens bounds what the pictures of a conversation cost that are sent again with
	// each request. What is beyond leaves after an answer, the oldest first. 0 means
	// [DefaultPictureTokens]; with a negative value each is sent for one answer alone.
	PictureTokens int
	// Timeout bounds one answer. 0 means [DefaultTimeout].
	Timeout time.Duration
}

// Config is what a [Runner] is made of. All of it is needed.
type Config struct {
	Settings
	// Platforms are all there are, by name.
	Platforms map[string]chats.Platform
	// Safe reports whether a job is certainly not another process's at this moment. Nil where this one
	// works alone.
	Safe func(j *queue.Run) bool
	// Redact masks secrets in what goes out.
	Redact func(text string) string
	// Spell writes the commands in a text as people do on a platform.
	Spell func(platform, text string) string
	// Files keeps the workspaces. Nil means that no other process has this disk's.
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
	// Watcher is told what happens in turns.
	Watcher Watcher
}

// Sender makes the parts of answers.
type Sender interface {
	// Prepare makes those of an answer. Where the caller writes the job next, recorded, the record says that
	// the first part is being sent.
	Prepare(j *queue.Run, answer string, recorded bool)
}

// Queue has what waits become part of a turn that runs, and gives turns their slots.
type Queue interface {
	// Join gives the messages that can become part of a job to join, which makes them that.
	Join(ctx context.Context, j *queue.Run, join func(some []*queue.Run) (joined, gone []*queue.Run, err error)) error
	// Listen has added called when such a message comes, until the job ends or stop is called.
	Listen(j *queue.Run, added func(partial bool)) (stop func())
	// AwaitSlot waits until a job may have the agent again, or ctx ends.
	AwaitSlot(ctx context.Context, j *queue.Run)
}

// Position says where a conversation stands. The goroutine of its turn asks for it.
type Position interface {
	// ReplyPosition is that of the reply whose calls are being resolved.
	ReplyPosition() string
}

// Gate decides about the calls of tools.
type Gate interface {
	// Decide says whether a call of a turn may run.
	Decide(ctx context.Context, j *queue.Run, at Position, call toolgroups.Call, tool toolgroups.Tool) (agent.Decision, error)
	// Note puts into a job the decisions that were made while it waited, and reports whether it
	// has something to go on with.
	Note(ctx context.Context, j *queue.Run) (bool, error)
}

// Asker asks users what tools want to know while they run.
type Asker interface {
	// For returns [agent.Turn.Ask] of a turn; nil where no user is there.
	For(j *queue.Run, at Position) func(context.Context, toolgroups.Call, toolgroups.Question, agent.InTurn) (toolgroups.Answer, error)
	// Ended is told that a call has its result on record.
	Ended(ctx context.Context, j *queue.Run, call string) error
}

// Host is what is around turns.
type Host interface {
	// Scope says on whose behalf the tools of a turn run, whose conversation has a log.
	Scope(j *queue.Run, log string) (toolgroups.Scope, error)
	// Refused answers a turn for which there is no budget; the notice says so.
	Refused(ctx context.Context, j *queue.Run, scope toolgroups.Scope, failure error, notice string) (string, error)
	// Failed answers a turn that failed with what its sender is told; again says that asking once more
	// may help.
	Failed(ctx context.Context, j *queue.Run, told string, again bool) string
	// Report says what an administrator has to do about a failure: to those who ask, where they are one,
	// and else to the administrators. It returns the sentence for the chat.
	Report(ctx context.Context, j *queue.Run, failure, remedy string) string
	// Administrator is who can change settings: by name for those who know them.
	Administrator(user string) string
	// Heard returns what was said in the chat of a job before it and not to the bot, behind the message
	// with the given id: the last of it, the oldest first.
	Heard(ctx context.Context, j *queue.Run, after string) []chats.Quoted
	// PostLine puts a line of Markdown under a message, or into the chat of a job where that is empty: once
	// under its key, and certainly once it returns.
	PostLine(ctx context.Context, key string, j *queue.Run, under, line string) error
}

// Keeper looks after the store.
type Keeper interface {
	// Mend sets a damaged record aside, and reports whether that was done now.
	Mend(ctx context.Context, d *queue.DamagedError, chat chats.Chat) (bool, error)
	// Failing reports whether the store did not take what was last written.
	Failing() bool
}

// Watcher is told what happens in turns.
type Watcher interface {
	// Watch returns what is told what happens in the turn of a job, concurrently; what has nothing
	// of it be shown, and reports false where something is; and what is called at the end of
	// that: the job knows its preview then.
	Watch(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func())
}

// Runner answers messages.
type Runner struct {
	cfg   Config
	Cache *conversation.Cache
	// unstored are messages that the store did not take, by the keys of their jobs.
	unstored *cache.Cache[string, unstored]
	// unheard are transcripts that the store did not take, by the keys of their jobs and their sounds.
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
