package agent

import (
	"context"

	"oneclaw/toolgroups"
)

// Turn is all that answering needs.
type Turn struct {
	// Prompt is the static part of the system prompt: agent prompt and skills. The
	// listing of tool groups is joined to it.
	Prompt string
	// Tail is put behind the static part: memory.
	Tail string
	// History is the window of the conversation as it is stored, oldest first; it
	// ends with the message to be answered, or wherever an earlier run stopped.
	History []Message
	// Incomplete says that messages in front of History were left out that no summary
	// stands for.
	Incomplete bool
	// Set is what the conversation can use.
	Set *toolgroups.Set
	// Router decides which tools stand in the array of a request. Nil means the core
	// and the loaded groups.
	Router toolgroups.Router
	// Scope is on whose behalf tools run.
	Scope toolgroups.Scope
	// Model answers; nil means the agent's own.
	Model Model
	// ContextTokens is the size of the model's context; 0 means what the model says.
	ContextTokens int
	// CacheKey is the same for all turns of one conversation.
	CacheKey string
	// Temperature, if not nil, is asked of the model, where the model takes one.
	Temperature *float64
	// Effort is how hard the model is to think; empty leaves it to the model.
	Effort string
	// MaxRounds bounds the model's replies; 0 means 50.
	MaxRounds int
	// ReadFile, if not nil, reads a file of the workspace, of at most limit bytes, so
	// that models can be shown pictures.
	ReadFile func(path string, limit int64) ([]byte, error)
	// Redact, if not nil, masks secrets in what tools return, before it becomes part of
	// the conversation, and in what the model says.
	Redact func(text string) string
	// Gate, if not nil, is asked before each call runs.
	Gate Gate
	// Settle, if not nil, is told the result of each call that has run before that is
	// yielded, and may change it. An error ends the turn. It is called by the goroutine that
	// iterates.
	Settle func(ctx context.Context, result *Message) error
	// Steer, if not nil, is asked after each round of tools for what people have written
	// since the turn began. The messages it returns are in the conversation already, as
	// [Message.Joined] ones, and the next request shows them. It is called by the goroutine
	// that iterates.
	Steer func(ctx context.Context) ([]Message, error)
	// Ask, if not nil, asks the person on whose behalf a call runs what its tool wants to know,
	// and returns the answer. It is called by the goroutine of the call; what it has done in turn
	// is done by the one that iterates.
	Ask func(ctx context.Context, call toolgroups.Call, q toolgroups.Question, inTurn InTurn) (toolgroups.Answer, error)
	// Cut, if not nil, is told before such a request. It is called by the goroutine that
	// iterates.
	Cut func(Cut)
	// Observe, if not nil, is told what happens: best effort, never stored, called
	// from several goroutines.
	Observe func(Event)
}

// InTurn has the goroutine that iterates over a turn do something while a call of it runs, and
// returns what came of it, or an error where it was not done because the call is over.
type InTurn func(do func() error) error

// Gate decides whether a call may run now.
type Gate func(ctx context.Context, call toolgroups.Call, tool toolgroups.Tool) (Decision, error)

// Decision is the answer of a [Gate].
type Decision struct {
	Verdict Verdict
	// Reason is told to the model where the verdict is Deny, and Fault, if not nil, instead.
	Reason string
	Fault  *toolgroups.Error
}

// Verdict is whether a call runs.
type Verdict int

// The verdicts.
const (
	Allow Verdict = iota
	Deny
	// Pending leaves the call open: the others run, then the turn is suspended.
	Pending
)

// Event is something that happens during a turn, for previews, pages and metrics.
// Exactly one of the pointers is set.
type Event struct {
	Delta   *Delta
	Request *RequestEvent
	Reply   *ReplyEvent
	Began   *ToolEvent
	Step    *ToolEvent
	Ended   *ToolEvent
}

// RequestEvent is a request that goes to the model.
type RequestEvent struct {
	// Model is what the provider calls the model that is asked first; empty if unknown.
	Model string
	// Routing is the way by which tools reach the model, as its router calls it; empty
	// without one.
	Routing string
	Tools   []string
	Groups  []string
	// ToolTokens estimates what the tools array costs, AllTokens what all tools of
	// the registry would.
	ToolTokens int
	AllTokens  int
	// Messages are those of the request, the oldest first. They are read while the observer
	// is told, and never changed.
	Messages []Message
}

// ReplyEvent is a reply of the model.
type ReplyEvent struct {
	Err error
	// Text says that there is some, Aloud that it began in the middle of a thought.
	Text, Aloud bool
}

// ToolEvent is a tool call that runs, or has ended.
type ToolEvent struct {
	// Call is its id, unique among the calls of one reply.
	Call string
	Tool string
	// Doing says of a call that begins what it does, in everyday words.
	Doing string
	// Step is what the tool itself says about how far it is. It may come when the call has
	// ended.
	Step string
	// Status is that of a call that has ended.
	Status Status
}
