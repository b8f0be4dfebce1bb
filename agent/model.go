package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oneclaw/toolgroups"
)

// Model is a language model. Budgets and failover wrap it for one turn.
type Model interface {
	// Complete sends one request and returns the whole reply. It gives pieces of it to onDelta, if not
	// nil, as they come. It retries transient failures itself and returns a *[ModelError] when it gives
	// up.
	Complete(ctx context.Context, req Request, onDelta func(Delta)) (Reply, error)
}

// Request is a request to a model.
type Request struct {
	// System is the system prompt, the static parts first.
	System string
	// Messages is the window of the conversation, oldest first, as [Arrange] returns it. Adapters must
	// not change them.
	Messages []Message
	// Tools is the array of this round, in the order in which it is sent.
	Tools []toolgroups.Tool
	// ToolTokens estimates the cost of Tools, AllTokens that of all tools of the registry. They are for
	// statistics and are not sent.
	ToolTokens, AllTokens int
	// CacheKey is the same for all requests of one conversation.
	CacheKey string
	// CacheFor is how long the provider should keep the prompt; 0 leaves it to the provider.
	CacheFor time.Duration
	// Temperature is between 0 and 2; nil leaves it to the provider. It is not sent to models that take
	// none.
	Temperature *float64
	// Effort is the reasoning effort, one of [Efforts]; empty leaves it to the model.
	Effort string
	// ReadFile reads the pictures that [Shown] lists, for a model that can see; nil if there are none.
	// Unreadable pictures are left out.
	ReadFile func(path string, limit int64) ([]byte, error)
}

// Efforts are the reasoning efforts. A model with fewer takes the nearest.
func Efforts() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"} }

// Delta is a piece of a reply while it streams.
type Delta struct {
	// Text continues what came before.
	Text string
	// Restart says that the reply begins again because the first attempt broke off: discard everything
	// before it.
	Restart bool
}

// Profile is what is known of a model; zero values are unknown.
type Profile struct {
	// Name is the provider's name for it.
	Name string
	// ContextTokens is the size of its context, MaxTools the longest tools array that it takes.
	ContextTokens, MaxTools int
	// Native says that it finds deferred tools with its provider's search.
	Native bool
	// LongCache says that its provider can keep prompts for an hour, at a higher price for writes.
	LongCache bool
	// Effort is the reasoning effort of requests that set none.
	Effort string
}

// ProfileOf returns the profile of a model that has a method Profile.
func ProfileOf(m Model) Profile {
	if p, ok := m.(interface{ Profile() Profile }); ok {
		return p.Profile()
	}
	return Profile{}
}

// Reply is the answer of a model to one request.
type Reply struct {
	Text string
	// Reasoning is kept with the message, for models that require it back.
	Reasoning string
	// Calls are in the model's order. Their ids may be missing or repeat; the agent repairs that.
	Calls []Call
	// Truncated says that the model stopped at its output limit.
	Truncated bool
	Usage     Usage
	// Model is the name that the provider reports.
	Model string
}

// Kind is the reason why a turn could not be answered, from which the caller chooses a text.
type Kind string

// The kinds of failure.
const (
	// KindAuth: the provider refused the key.
	KindAuth Kind = "auth"
	// KindRateLimit: still over a rate limit or quota after the retries.
	KindRateLimit Kind = "rate_limit"
	// KindUnavailable: no connection, 5xx, a broken or stalled stream after the retries.
	KindUnavailable Kind = "unavailable"
	// KindOverflow: the request is larger than the model's context.
	KindOverflow Kind = "overflow"
	// KindRejected: the provider rejects the request as wrong (400, unknown model).
	KindRejected Kind = "rejected"
	// KindRounds: the turn used up its rounds without an answer.
	KindRounds Kind = "rounds"
	// KindBudget: a budget does not allow the call.
	KindBudget Kind = "budget"
)

// ModelError is a failure of a turn; the user is told its kind. Its text is for the log and holds no
// secrets.
type ModelError struct {
	Kind Kind
	// Status is the HTTP status, if there was one.
	Status int
	// RetryAfter is how long the provider asks to wait, if it does.
	RetryAfter time.Duration
	// Notice, with [KindBudget], is shown to the user: which budget is used up, and what to do.
	Notice string
	// Remedy, with [KindAuth], is shown to an administrator: whose key was refused, and where it is
	// set.
	Remedy string
	Err    error
}

// Error returns the text for the log.
func (e *ModelError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model: %s (HTTP %d): %v", e.Kind, e.Status, e.Err)
	}
	return fmt.Sprintf("model: %s: %v", e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }

// ErrNoAnswer is wrapped by the error of a turn in which the model said nothing.
var ErrNoAnswer = errors.New("empty answer")

// ErrSuspended ends a turn that waits for the approval of a call. After the decision the turn is run
// again with the stored history.
var ErrSuspended = errors.New("agent: the turn waits for an approval")
