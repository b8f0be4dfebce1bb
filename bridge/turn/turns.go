// Package turn answers messages: it shows the agent a conversation, and stores each message
// of a turn before the agent acts on it.
package turn

import (
	"cmp"
	"context"
	"iter"
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
	// Transcribe writes a recording of somebody down. What cannot be written down is an *[TranscriptionError]; after
	// another error whoever sent it may try again. Nil means that recordings are not heard.
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

// Config is what a turner is made of.
type Config struct {
	Settings
	queue.Shared
	Store storage.Store
	Jobs  queue.Store
	Deps  Dependencies
}

// Dependencies is what a turn needs around it.
type Dependencies struct {
	// Scope says on whose behalf the tools of a turn run.
	Scope func(*queue.Run, conversation.Session) (toolgroups.Scope, error)
	// Decide says whether a call of a turn may run.
	Decide func(context.Context, *queue.Run, *conversation.History, toolgroups.Call, toolgroups.Tool) (agent.Decision, error)
	// Decided reports whether one of the decisions is there that these cards ask for.
	Decided func(ctx context.Context, cards []string) (bool, error)
	// Join gives what was written while a turn runs, and can be answered by it, to join. That
	// returns what is part of the job from now on, and what is nobody's here any more.
	Join func(ctx context.Context, j *queue.Run, join func(some []*queue.Run) (joined, gone []*queue.Run, err error)) error
	// Asks returns [agent.Turn.Ask] of a turn; nil where no person is there. Ended is told that
	// a call has its result on record.
	Asks  func(j *queue.Run, h *conversation.History) func(context.Context, toolgroups.Call, toolgroups.Question, agent.Aside) (toolgroups.Answer, error)
	Ended func(ctx context.Context, j *queue.Run, call string) error
	// Refused answers a turn for which there is no budget; the notice says so.
	Refused func(ctx context.Context, j *queue.Run, scope toolgroups.Scope, failure error, notice string) (string, error)
	// Prepare makes the parts of an answer and of the job's files. The caller says whether
	// it writes the job next.
	Prepare func(j *queue.Run, answer string, recorded bool)
	// Heard, if not nil, returns what was said in the chat of a job before it and not to the
	// bot, behind the message with the given id: the last of it, the oldest first.
	Heard func(ctx context.Context, j *queue.Run, after string) []chats.Quoted
	// Mend sets a damaged record aside, and reports whether that was done now.
	Mend func(ctx context.Context, d *queue.DamagedError, chat chats.Chat) (bool, error)
	// Show puts a line of Markdown under a message, or into the chat of a job where that is empty: once
	// under its key, and certainly once it returns.
	Show func(ctx context.Context, key string, j *queue.Run, under, line string) error
	// Listen has added called, without waiting for it, when something waits that the sender of a
	// job wrote since it runs and that Join would give, until stop. Partial says that more of
	// that may come.
	Listen func(j *queue.Run, added func(partial bool)) (stop func())
	// Watch returns what is told what happens in the turn of a job, concurrently; what has nothing
	// of it be shown, and reports false where something is; and what is called at the end of
	// that: the job knows its preview then.
	Watch func(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func())
	// Failing reports whether the store did not take what was last written.
	Failing func() bool
	// AwaitTurn waits until a job may have the agent again.
	AwaitTurn func(ctx context.Context, j *queue.Run)
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
