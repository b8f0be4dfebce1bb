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
	// Tail follows the static part: memory.
	Tail string
	// History is the window of the conversation as stored, oldest first; it ends with the message to be
	// answered, or where an earlier run stopped.
	History []Message
	// Incomplete says that earlier messages were left out that no summary covers.
	Incomplete bool
	// Set holds the tools of the conversation.
	Set *toolgroups.Set
	// Router decides which tools are in the array of a request. Nil means the core and the loaded
	// groups.
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
	// Temperature is nil for the model's default; models that take none ignore it.
	Temperature *float64
	// Effort is the reasoning effort; empty leaves it to the model.
	Effort string
	// MaxRounds bounds the model's replies; 0 means 50.
	MaxRounds int
	// ReadFile, if not nil, reads a file of the workspace, of at most limit bytes, so
	// that models can be shown pictures.
	ReadFile func(path string, limit int64) ([]byte, error)
	// Redact, if not nil, masks secrets in results before they become part of the conversation, and in
	// what the model says.
	Redact func(text string) string
	// Gate, if not nil, decides on each call before it runs.
	Gate Gate
	// Settle, if not nil, is called with the result of each call that ran, before it is yielded, and
	// may change it. An error ends the turn. It runs in the goroutine that iterates.
	Settle func(ctx context.Context, result *Message) error
	// Steer, if not nil, is called after each round of tools. It returns the messages that users have
	// written since the turn began; they are already in the conversation, with [Message.Joined], and
	// the next request shows them. It runs in the goroutine that iterates.
	Steer func(ctx context.Context) ([]Message, error)
	// Ask, if not nil, asks the user on whose behalf a call runs a question of its tool, and returns
	// the answer. It runs in the goroutine of the call; functions that it gives to inTurn run in the
	// goroutine that iterates.
	Ask func(ctx context.Context, call toolgroups.Call, q toolgroups.Question, inTurn InTurn) (toolgroups.Answer, error)
	// Cut, if not nil, is called before a request that does not show all of the history. It runs in the
	// goroutine that iterates.
	Cut func(Cut)
	// Observe, if not nil, receives events: best effort, never stored, from several goroutines.
	Observe func(Event)
}

// InTurn runs do in the goroutine that iterates while a call runs, and returns its error, or another if
// do was not run because the call is over.
type InTurn func(do func() error) error

// Gate decides whether a call may run now.
type Gate func(ctx context.Context, call toolgroups.Call, tool toolgroups.Tool) (Decision, error)

// Decision is the result of a [Gate].
type Decision struct {
	Verdict Verdict
	// Reason is the model's explanation if the verdict is Deny; Fault, if not nil, replaces it.
	Reason string
	Fault  *toolgroups.Error
}

// Verdict says whether a call runs.
type Verdict int

// The verdicts.
const (
	Allow Verdict = iota
	Deny
	// Pending leaves the call open: the other calls run, then the turn is suspended.
	Pending
)

// Event is an event of a turn, for previews, pages and metrics. Exactly one of the pointers is set.
type Event struct {
	Delta   *Delta
	Request *RequestEvent
	Reply   *ReplyEvent
	Began   *ToolEvent
	Step    *ToolEvent
	Ended   *ToolEvent
}

// RequestEvent is a request to the model.
type RequestEvent struct {
	// Model is the provider's name of the model that is asked first; empty if unknown.
	Model string
	// Routing is the router's name for how tools reach the model; empty without a router.
	Routing string
	Tools   []string
	Groups  []string
	// ToolTokens estimates the cost of the tools array, AllTokens that of all tools of the registry.
	ToolTokens int
	AllTokens  int
	// Messages are the request's, oldest first. Observers read them only during the call, and never
	// change them.
	Messages []Message
}

// ReplyEvent is a reply of the model.
type ReplyEvent struct {
	Err error
	// Text says that it has text, Aloud that it began in the middle of a thought.
	Text, Aloud bool
}

// ToolEvent is a tool call that begins, reports progress, or has ended.
type ToolEvent struct {
	// Call is the call's id, unique among the calls of one reply.
	Call string
	Tool string
	// Doing describes a call that begins, in everyday words.
	Doing string
	// Step is the tool's own progress report. It may come after the call has ended.
	Step string
	// Status is the outcome of a call that has ended.
	Status Status
}
