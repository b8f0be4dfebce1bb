// Package turn answers messages. It passes a conversation to the agent, and stores each message of a
// turn before the agent acts on the message.
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
	defaultWindowTokens = 96_000
	DefaultTimeout      = 15 * time.Minute
	DefaultTaskTokens   = 100_000
	DefaultTaskTimeout  = time.Hour
)

// Agent answers turns. *[agent.Agent] is one.
type Agent interface {
	// Run yields each new message of the conversation before it acts on the message. It yields an error
	// without a message, and only at the end.
	Run(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error]
}

// DeepCommand is the command that sends a message to the strong model. A message begins with it, after a
// slash or an exclamation mark.
const DeepCommand = "deep"

// Purpose is the purpose of a turn. Each purpose may have its own model.
type Purpose string

// The purposes of turns.
const (
	// ForMessage is the purpose of turns that answer messages with the chat's model.
	ForMessage Purpose = ""
	// ForDeep is the purpose of turns that answer messages for the strong model.
	ForDeep Purpose = "deep"
	// ForSchedule is the purpose of turns that run tasks of schedules.
	ForSchedule Purpose = "schedules"
	// ForWebhook is the purpose of turns that run tasks of webhooks.
	ForWebhook Purpose = "webhooks"
	// ForBackground is the purpose of turns that run background tasks.
	ForBackground Purpose = "background"
)

// Profile configures one turn.
type Profile struct {
	// Prompt is the static part of the system prompt; Tail follows it.
	Prompt, Tail string
	// PromptOthers says that Prompt, Tail or what is recalled holds words of others. PromptShown and PromptOutside are
	// as in [agent.Turn].
	PromptOthers, PromptShown bool
	PromptOutside             []string
	// Model is the model of the turn; nil means the agent's own. Summarizer is as in [agent.Turn].
	Model, Summarizer agent.Model
	// Charges, if not nil, are those of the calls of the models.
	Charges conversation.Charges
	// ChatModel, if not nil, is the model that usually answers in the chat, whose context decides when
	// the conversation is summarized.
	ChatModel agent.Model
	// Temperature, Effort and MaxRounds are as in [agent.Turn].
	Temperature *float64
	Effort      string
	MaxRounds   int
}

// Options are the settings of turns.
type Options struct {
	// PictureTokens bounds the cost of the pictures of a conversation, which are sent with each request.
	// When they cost more, the oldest are dropped from later requests once the turn is answered. 0 means
	// [DefaultPictureTokens]. With 1, each picture is sent for one answer only.
	PictureTokens int `yaml:"picture_tokens" env:"ONECLAW_PICTURE_TOKENS"`
	// Acknowledge adds a reaction to messages whose turn has to wait, on platforms with reactions.
	Acknowledge bool `yaml:"reactions" env:"ONECLAW_REACTIONS"`
}

// Background bounds background tasks.
type Background struct {
	// Tokens bounds the input and output of the model for one task. Timeout bounds its time, and starts
	// anew after each wait for a user and after a restart. 0 means [DefaultTaskTokens] and
	// [DefaultTaskTimeout].
	Tokens  int           `yaml:"tokens" env:"ONECLAW_BACKGROUND_TOKENS"`
	Timeout time.Duration `yaml:"timeout" env:"ONECLAW_BACKGROUND_TIMEOUT"`
}

// Settings configure turns.
type Settings struct {
	Options
	Background Background
	// Agent runs turns.
	Agent Agent
	// Tools returns the current registry of tools.
	Tools func() *toolgroups.Registry
	// Router decides which tools a request offers to the model. Nil means the core tools and those of
	// the groups that the conversation has loaded.
	Router toolgroups.Router
	// Profile is called at the beginning of a turn, and returns its profile. Nil means the zero value.
	Profile func(ctx context.Context, scope toolgroups.Scope, purpose Purpose) (Profile, error)
	// Recall, if not nil, searches the memory for a message. The result excludes the notes in the
	// prompt, and is stored with the message. own says that all of it is the person's own, shown that they were shown
	// the rest when it was saved. An error is logged and ignored.
	Recall func(ctx context.Context, scope toolgroups.Scope, text string) (found string, own, shown bool, err error)
	// BeforeCompact, if not nil, is called with the messages that a summary is about to cover, so that
	// facts can be saved to the memory. It may be called again for them after a crash. An error does not
	// prevent the summary.
	BeforeCompact func(ctx context.Context, scope toolgroups.Scope, messages []agent.Message) error
	// Transcribe returns the transcript of a user's recording. A permanent failure is a
	// *[TranscriptionError]; after another error, the user may try again. If it is nil, recordings are
	// not transcribed.
	Transcribe func(ctx context.Context, scope toolgroups.Scope, r Recording) (string, error)
	// SpeechFor returns the function that speaks an answer ([outbox.Delivery.Speak]); nil if it is not
	// spoken. heard says that the user spoke the message. If SpeechFor is nil, no answer is spoken.
	SpeechFor func(ctx context.Context, scope toolgroups.Scope, heard bool) func(ctx context.Context, text, format string) ([]byte, error)
	// SeparateTurns gives messages that come during a turn their own turns, instead of adding them to
	// the running one.
	SeparateTurns bool
	// RedactPartial, if not nil, masks secrets in an unfinished answer. It enables previews, on
	// platforms that can show them.
	RedactPartial func(text string) string
	// Observe, if not nil, receives events of turns, concurrently. Events may be lost.
	Observe func(chats.Chat, agent.Event)
	// WindowTokens bounds the part of a conversation that is read for a turn, estimated at four bytes a
	// token. 0 means [defaultWindowTokens].
	WindowTokens int
	// Timeout bounds one answer. It starts anew after each wait for a user and after a restart. 0 means
	// [DefaultTimeout].
	Timeout time.Duration
}

// Config configures a [Runner]. Fields are required unless their comment says what nil or zero means.
type Config struct {
	Settings
	// Platforms are all platforms, by name.
	Platforms map[string]chats.Platform
	// OwnsSafely reports whether certainly no other process owns the job now. Nil if no other process
	// uses the store.
	OwnsSafely func(j *queue.Run) bool
	// Redact masks secrets in outgoing text, and RedactLines in lines about what calls have done.
	Redact, RedactLines func(text string) string
	// FormatCommands rewrites the commands in a text for a platform.
	FormatCommands func(platform, text string) string
	// Files keeps the workspaces in the store. Nil means that they are only on this disk.
	Files        queue.FileStore
	Log          *slog.Logger
	Now          func() time.Time
	Store        storage.Store
	Jobs         queue.Store
	Queue        Queue
	Sender       Sender
	Gate         Gate
	Asker        Asker
	Host         Host
	StoreMonitor StoreMonitor
	// Watcher provides observers of turns.
	Watcher Watcher
}

// Sender makes the parts of answers.
type Sender interface {
	// Prepare makes the parts of an answer. If recorded is set, the caller writes the job next, and that
	// record marks the first part as being sent.
	Prepare(j *queue.Run, answer string, recorded bool)
}

// Queue adds waiting messages to running turns, and gives turns their slots.
type Queue interface {
	// Join calls join with the messages that can become part of a job. join makes them part of the job.
	Join(ctx context.Context, j *queue.Run, join func(some []*queue.Run) (joined, gone []*queue.Run, err error)) error
	// OnAdded calls added when such a message comes, until the job ends or stop is called.
	OnAdded(j *queue.Run, added func(partial bool)) (stop func())
	// AwaitSlot waits until a job has a slot again, or ctx ends.
	AwaitSlot(ctx context.Context, j *queue.Run)
}

// Position returns positions in a conversation. Only the goroutine of its turn may use it.
type Position interface {
	// ReplyPosition returns the position of the reply whose calls are being decided and run.
	ReplyPosition() string
}

// Gate decides on tool calls.
type Gate interface {
	// Decide returns whether a call of a turn may run. input is what the model was shown before the call.
	Decide(ctx context.Context, j *queue.Run, at Position, call toolgroups.Call, tool toolgroups.Tool, input agent.Input) (agent.Decision, error)
	// ApplyDecisions adds the decisions that were made while a job waited to the job, and reports
	// whether the job can continue.
	ApplyDecisions(ctx context.Context, j *queue.Run) (bool, error)
}

// Asker asks users the questions of running tools.
type Asker interface {
	// AskFunc returns the [agent.Turn.Ask] of a turn; nil if no user waits for its answer.
	AskFunc(j *queue.Run, at Position) func(context.Context, toolgroups.Call, toolgroups.Question, agent.InTurn) (toolgroups.Answer, error)
	// EndCall closes the open questions of a call. It is called when the result of the call is stored.
	EndCall(ctx context.Context, j *queue.Run, call string) error
}

// Host gives turns access to the bridge.
type Host interface {
	// Scope returns the scope in which the tools of a turn run. log is the log of its conversation.
	Scope(j *queue.Run, log string) (toolgroups.Scope, error)
	// RefusalAnswer returns the answer of a turn that has no budget. notice is the text about that.
	RefusalAnswer(ctx context.Context, j *queue.Run, scope toolgroups.Scope, failure error, notice string) (string, error)
	// FailureAnswer returns the answer of a failed turn. told is the text for its sender, and again says
	// that asking again may help.
	FailureAnswer(ctx context.Context, j *queue.Run, told string, again bool) string
	// Report returns a sentence for the chat about the remedy for a failure. If the sender is an
	// administrator, it is the remedy; otherwise the remedy is sent to all administrators.
	Report(ctx context.Context, j *queue.Run, failure, remedy string) string
	// NotifyAdmins sends a text to all administrators, once for each key.
	NotifyAdmins(ctx context.Context, key, text string) error
	// Administrator returns the name of the owner, or "an administrator" for strangers.
	Administrator(user string) string
	// AmbientMessages returns the latest messages in the chat of a job that were not addressed to the
	// bot, since the message with the id after, the oldest first.
	AmbientMessages(ctx context.Context, j *queue.Run, after string) []chats.Quoted
	// PostLine posts a line of Markdown in the job's chat, once for each key. If under is not empty, the
	// line replies to the message with that id. When PostLine returns nil, the line will be sent.
	PostLine(ctx context.Context, key string, j *queue.Run, under, line string) error
}

// StoreMonitor handles damaged records, and reports whether writes fail.
type StoreMonitor interface {
	// DeadLetterRecord turns a damaged record into a dead letter. It returns false if it is one already.
	DeadLetterRecord(ctx context.Context, d *queue.DamagedError, chat chats.Chat) (bool, error)
	// Failing reports whether the last write to the store failed.
	Failing() bool
}

// Watcher provides observers of turns.
type Watcher interface {
	// Watch returns an observer of the turn of a job, which may be called concurrently. withhold
	// prevents the preview of the turn, and returns false if the preview is shown already. The caller
	// calls end at the end of the turn, which sets the job's Preview.
	Watch(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func())
}

// Runner runs turns.
type Runner struct {
	cfg   Config
	Cache *conversation.Cache
	// unstored holds messages that could not be stored, by the keys of their jobs.
	unstored *cache.Cache[string, unstoredMessage]
	// unstoredTranscripts holds transcripts that could not be stored, by job key and recording.
	unstoredTranscripts *cache.Cache[string, receipts.Transcript]
}

// New returns a runner. Zero values of the settings become their defaults.
func New(cfg Config) *Runner {
	cfg.WindowTokens = cmp.Or(cfg.WindowTokens, defaultWindowTokens)
	cfg.PictureTokens = cmp.Or(cfg.PictureTokens, DefaultPictureTokens)
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.Background.Tokens = cmp.Or(cfg.Background.Tokens, DefaultTaskTokens)
	cfg.Background.Timeout = cmp.Or(cfg.Background.Timeout, DefaultTaskTimeout)
	return &Runner{
		cfg: cfg, Cache: conversation.NewCache(cfg.Store, cfg.WindowTokens),
		unstored: cache.New[string, unstoredMessage](maxUnstored), unstoredTranscripts: cache.New[string, receipts.Transcript](maxUnstored),
	}
}
