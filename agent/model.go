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
	// Complete sends one request and returns the whole reply. Pieces of it are given
	// to onDelta, if not nil, as they come. It retries what can be retried by itself
	// and returns a *[ModelError] when it gives up.
	Complete(ctx context.Context, req Request, onDelta func(Delta)) (Reply, error)
}

// Request is what a model is asked.
type Request struct {
	// System is the system prompt, the static parts first.
	System string
	// Messages is the window of the conversation, oldest first, as [Arrange] arranges it.
	// The adapter must not change them.
	Messages []Message
	// Tools is the array of this round, in the order it goes over the wire.
	Tools []toolgroups.Tool
	// ToolTokens estimates what Tools cost, AllTokens what all tools of the registry
	// would: for who counts, not for the wire.
	ToolTokens, AllTokens int
	// CacheKey is the same for all requests of one conversation.
	CacheKey string
	// CacheFor is how long the provider is to keep the prompt; 0 leaves it to the provider.
	CacheFor time.Duration
	// Temperature is between 0 and 2; nil leaves it to the provider. Models that take
	// none are not sent it.
	Temperature *float64
	// Effort is how hard the model is to think, as [Efforts] lists it; empty leaves it to
	// the model.
	Effort string
	// ReadFile reads the pictures that a model which can see is shown, as [Shown] lists them;
	// nil where there are none. What cannot be read is left out.
	ReadFile func(path string, limit int64) ([]byte, error)
}

// Efforts are how hard a model can be told to think. Who knows fewer takes the nearest.
func Efforts() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"} }

// Delta is a piece of a reply while it streams.
type Delta struct {
	// Text continues what came before.
	Text string
	// Restart says that the reply begins anew, because the first attempt broke off:
	// what came before is void.
	Restart bool
}

// Profile is what is known of a model; zero values are unknown.
type Profile struct {
	// Name is what its provider calls it.
	Name string
	// ContextTokens is how many tokens it can take, MaxTools how long a tools array.
	ContextTokens, MaxTools int
	// Native says that it finds deferred tools with the search of its provider.
	Native bool
	// LongCache says that its provider keeps prompts for an hour where it is asked to, for dearer writes.
	LongCache bool
	// Effort is how hard it thinks where a request does not say.
	Effort string
}

// ProfileOf asks a model for its profile, if it is one that has a method Profile.
func ProfileOf(m Model) Profile {
	if p, ok := m.(interface{ Profile() Profile }); ok {
		return p.Profile()
	}
	return Profile{}
}

// Reply is the answer of a model to one request.
type Reply struct {
	Text string
	// Reasoning is kept with the message, for models that want it back.
	Reasoning string
	// Calls in the model's order. Their ids may be missing or repeat themselves;
	// the agent mends that.
	Calls []Call
	// Truncated is true where the model stopped at its output limit.
	Truncated bool
	Usage     Usage
	// Model is the name the provider reports.
	Model string
}

// Kind says why a turn could not be answered, for the caller to choose a sentence.
type Kind string

// The kinds of failure.
const (
	// KindAuth: the provider refused the key.
	KindAuth Kind = "auth"
	// KindRateLimit: still refused by rate or quota after the retries.
	KindRateLimit Kind = "rate_limit"
	// KindUnavailable: no connection, 5xx, a broken or stalled stream after the retries.
	KindUnavailable Kind = "unavailable"
	// KindOverflow: the request is larger than the model's context.
	KindOverflow Kind = "overflow"
	// KindRejected: the provider calls the request wrong (400, unknown model).
	KindRejected Kind = "rejected"
	// KindRounds: the turn went through its limit of rounds without an answer.
	KindRounds Kind = "rounds"
	// KindBudget: a budget does not allow the call.
	KindBudget Kind = "budget"
)

// ModelError is a failure of a turn that a person should be told about by kind.
// Its text is for the log; it holds no secrets.
type ModelError struct {
	Kind Kind
	// Status is the HTTP status, if there was one.
	Status int
	// RetryAfter is how long the provider asks to wait, if it does.
	RetryAfter time.Duration
	// Notice, with [KindBudget], is what the person is told: which budget, and what to do.
	Notice string
	// Remedy, with [KindAuth], is what an administrator is told: whose key it is, and where it is set.
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

// ErrNoAnswer is in the error of a turn to which the model said nothing.
var ErrNoAnswer = errors.New("empty answer")

// ErrSuspended ends a turn that waits for the approval of a call. It is run again,
// with the history as stored, when there is a decision.
var ErrSuspended = errors.New("agent: the turn waits for an approval")
