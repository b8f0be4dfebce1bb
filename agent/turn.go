package agent

import (
	"context"

	"oneclaw/toolgroups"
)

// Turn is the input of [Agent.Run].
type Turn struct {
	// Prompt is the static part of the system prompt: agent prompt and skills. The list of tool groups
	// is added to it.
	Prompt string
	// PromptTail is the part of the system prompt after the static part: memory.
	PromptTail string
	// PromptOthers says that Prompt or PromptTail holds words of others, PromptOutside which texts in them are of
	// others, or were written by the model after it had read such words. PromptShown says that the person was shown
	// all of these words when they were saved.
	PromptOthers, PromptShown bool
	PromptOutside             []string
	// History is the stored conversation, oldest message first. It ends with the message to be answered,
	// or where an earlier run stopped.
	History []Message
	// Waited is set if the turn continues after [ErrSuspended], and not after a run that was cut off: then
	// no open call has begun.
	Waited bool
	// Incomplete is set if earlier messages were left out and no summary covers them.
	Incomplete bool
	// Set holds the tools of the conversation.
	Set *toolgroups.Set
	// Router decides which tools are in the array of a request. Nil means the core tools and those of
	// loaded groups.
	Router toolgroups.Router
	// Scope says on whose behalf tools run.
	Scope toolgroups.Scope
	// Model answers the turn; nil means the agent's own.
	Model Model
	// Summarizer writes the summaries of [Agent.Compact]; nil means Model.
	Summarizer Model
	// ContextTokens is the size of the model's context; 0 means the model's own value.
	ContextTokens int
	// CacheKey is the same for all turns of one conversation.
	CacheKey string
	// Temperature is nil for the model's default. It is not sent to models that do not accept one.
	Temperature *float64
	// Effort is the reasoning effort; empty leaves it to the model.
	Effort string
	// MaxRounds bounds the model's replies; 0 means 50.
	MaxRounds int
	// MaxTokens bounds the input and output of all replies together; 0 means no bound. The model is told
	// when its next reply is likely the last. Only that one may exceed the bound.
	MaxTokens int
	// ReadFile, if not nil, reads a file of at most limit bytes from the workspace, so that pictures can
	// be sent to models.
	ReadFile func(path string, limit int64) ([]byte, error)
	// Redact, if not nil, masks secrets in results before they become part of the conversation, and in
	// the text of replies. RedactLines replaces it for announcements, which must show what a call has done: it masks only
	// values that are known as secrets. Nil means Redact.
	Redact, RedactLines func(text string) string
	// Gate, if not nil, decides on each call before it runs.
	Gate Gate
	// NoteShown, if not nil, is called before each request, and reports whether the model is shown words of others, and
	// whether the turn has read some. The reply is marked so, because the words may be gone from later requests.
	NoteShown func(input Input) (held, read bool)
	// OnResult, if not nil, is called with the result of each call that ran, before the result is
	// yielded, and may change it. An error ends the turn. It runs in the goroutine that iterates.
	OnResult func(ctx context.Context, result *Message) error
	// Steer, if not nil, is called after each round of tools. It returns the messages that users sent
	// since the last call. They are already in the stored conversation, with [Message.JoinedRef], and
	// are part of the next request. unasked is the new [toolgroups.Scope.Unasked]. It runs in the
	// goroutine that iterates.
	Steer func(ctx context.Context) (messages []Message, unasked bool, err error)
	// Ask, if not nil, puts a tool's question to the user on whose behalf the call runs, and returns
	// the answer. It runs in the goroutine of the call; functions that it passes to inTurn run in the
	// goroutine that iterates.
	Ask func(ctx context.Context, call toolgroups.Call, q toolgroups.Question, inTurn InTurn) (toolgroups.Answer, error)
	// OnCut, if not nil, is called after a request that did not contain the whole history. It runs in
	// the goroutine that iterates.
	OnCut func(Cut)
	// OnReply, if not nil, is called with each reply before it becomes part of the conversation. It runs in
	// the goroutine that iterates.
	OnReply func(Reply)
	// Observe, if not nil, receives events: best effort, never stored, from several goroutines.
	Observe func(Event)
}

// InTurn runs do in the goroutine that iterates, while a call runs. It returns the error of do, or the
// cause of the call's context if the call ended before do could run.
type InTurn func(do func() error) error

// Gate decides whether a call may run now. It must not change the input.
type Gate func(ctx context.Context, call toolgroups.Call, tool toolgroups.Tool, input Input) (Decision, error)

// Input is what the model has been shown when it gave a reply.
type Input struct {
	// Prompt is the system prompt. PromptOthers, PromptShown and PromptOutside are as in [Turn].
	Prompt                    string
	PromptOthers, PromptShown bool
	PromptOutside             []string
	// ToolsOfOthers says that the request describes a tool that does not come with the program.
	ToolsOfOthers bool
	// Spending is what the turn has spent.
	Spending *Spending
	// Messages are the messages of the conversation, oldest first; for a [Gate] up to those of the call's reply.
	Messages []Message
	// Incomplete is set if there were earlier messages, and no summary stands for them.
	Incomplete bool
}

// Decision is the result of a [Gate].
type Decision struct {
	Verdict Verdict
	// Reason explains the verdict Deny to the model. Fault, if not nil, is the call's result instead.
	Reason string
	Fault  *toolgroups.Error
	// ApprovedBy is the user whose approval the verdict Allow relies on, as platform:id; empty if none was
	// needed.
	ApprovedBy string
	// Role, if not 0, is the role with which the call runs instead of that of its scope.
	Role toolgroups.Role
	// ReadOthers and HoldsOthers are those of the call's scope.
	ReadOthers, HoldsOthers bool
	// Limit, if not nil, adds to the context of the tool what it may fetch.
	Limit func(context.Context) context.Context
}

// Verdict is the outcome of a [Gate].
type Verdict int

// The verdicts.
const (
	Allow Verdict = iota
	Deny
	// Pending leaves the call open. The other calls run, then the turn is suspended.
	Pending
)

// Event is an event of a turn, for previews, pages and metrics. Exactly one of the pointers is set.
type Event struct {
	Delta        *Delta
	Request      *RequestEvent
	Reply        *ReplyEvent
	ToolBegan    *ToolEvent
	ToolProgress *ToolEvent
	ToolEnded    *ToolEvent
}

// RequestEvent is a request to the model.
type RequestEvent struct {
	// Model is the provider's name of the model that is asked first; empty if unknown.
	Model string
	// Routing is the router's name for its current mode; empty without a router.
	Routing string
	Tools   []string
	Groups  []string
	// ToolTokens estimates the cost of the tools array, AllTokens that of all tools of the registry.
	ToolTokens int
	AllTokens  int
	// Messages are the messages of the request, oldest first. Observers must not change them, or keep
	// them after Observe returns.
	Messages []Message
}

// ReplyEvent is a reply of the model.
type ReplyEvent struct {
	Err error
	// HasText is set if the reply has text, BeganInThought if its text began in the middle of a thought.
	HasText, BeganInThought bool
}

// ToolEvent is a tool call that begins, reports progress, or has ended.
type ToolEvent struct {
	// Call is the call's id, unique among the calls of one reply.
	Call string
	Tool string
	// Doing describes a call that begins, in everyday words.
	Doing string
	// Progress is the tool's own progress report. It may come after the call has ended.
	Progress string
	// Status is the outcome of a call that has ended.
	Status Status
}
