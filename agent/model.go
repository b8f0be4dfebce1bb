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
	// Complete sends one request and returns the whole reply. If onDelta is not nil, it is called with
	// each piece of the reply as it arrives. Complete retries transient failures itself and returns a
	// *[ModelError] when it gives up, or the cause of ctx. The usage of the reply includes that of the
	// failed attempts, also if there is an error.
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
	// ToolTokens estimates the cost of Tools, AllTokens that of all tools in the registry. They are for
	// statistics and are not sent.
	ToolTokens, AllTokens int
	// CacheKey is the same for all requests of one conversation.
	CacheKey string
	// CacheFor is how long the provider should cache the prompt; 0 leaves it to the provider.
	CacheFor time.Duration
	// Temperature is between 0 and 2; nil leaves it to the provider. It is not sent to models that do
	// not accept one.
	Temperature *float64
	// Effort is the reasoning effort, one of [Efforts]; empty leaves it to the model.
	Effort string
	// ReadFile reads the pictures that [ShownPictures] lists; nil if there are none. Unreadable pictures
	// are left out.
	ReadFile func(path string, limit int64) ([]byte, error)
}

// EstimateTokens estimates the input tokens of the request.
func (r *Request) EstimateTokens() int {
	return len(r.System)/BytesPerToken + EstimateTokens(r.Messages) + r.ToolTokens
}

// Efforts returns the reasoning efforts. A model that has fewer uses the nearest.
func Efforts() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"} }

// Delta is a piece of a reply while it streams.
type Delta struct {
	// Text is appended to the text of the earlier pieces.
	Text string
	// Restart is set if the reply begins again because an attempt failed. Discard the pieces received
	// before it.
	Restart bool
}

// Profile describes a model; zero values are unknown.
type Profile struct {
	// Name is the provider's name for the model.
	Name string
	// ContextTokens is the size of its context, MaxTools the longest tools array that it accepts.
	ContextTokens, MaxTools int
	// NoTools is set if the model's server has refused tools. None are sent to it then.
	NoTools bool
	// LongCache is set if the provider can cache prompts for an hour, at a higher price for writes.
	LongCache bool
	// Effort is the reasoning effort of requests that set none.
	Effort string
}

// ProfileOf returns the profile of a model that has a Profile method, otherwise the zero value.
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
	// Calls are in the model's order. Ids may be missing or repeated; the agent repairs them.
	Calls []Call
	// Truncated is set if the reply was cut off, at the model's output limit or, if Filtered is set, by the
	// provider's filter.
	Truncated, Filtered bool
	// LeftOut are the names of tools that were not sent, because the model's server refuses them.
	LeftOut []string
	// CallsInText is set if the agent found the calls in the text, because the model's server did not.
	CallsInText bool
	Usage       Usage
	// Model is the name that the provider reports.
	Model string
}

// Kind is the reason why a turn could not be answered, from which the caller chooses a text.
type Kind string

// The kinds of failure.
const (
	// KindAuth: the provider refused the key.
	KindAuth Kind = "auth"
	// KindRateLimit: a rate limit is still exceeded after the retries.
	KindRateLimit Kind = "rate_limit"
	// KindCredit: the provider's account has no credit, or has reached its spending limit.
	KindCredit Kind = "credit"
	// KindUnavailable: no connection, 5xx, a broken or stalled stream after the retries.
	KindUnavailable Kind = "unavailable"
	// KindOverflow: the request is larger than the model's context.
	KindOverflow Kind = "overflow"
	// KindRejected: the provider rejects the request as invalid (400, unknown model).
	KindRejected Kind = "rejected"
	// KindRounds: the turn used up its rounds without an answer.
	KindRounds Kind = "rounds"
	// KindTokens: the turn used up its tokens without an answer.
	KindTokens Kind = "tokens"
	// KindBudget: a budget does not allow the call.
	KindBudget Kind = "budget"
)

// ModelError is the reason why a turn failed. Users see a text that depends on Kind. The error text is
// for the log and contains no secrets.
type ModelError struct {
	Kind Kind
	// Status is the HTTP status, if there was one.
	Status int
	// RetryAfter is how long the provider asks to wait; 0 if it does not say.
	RetryAfter time.Duration
	// Notice is shown to the user if Kind is [KindBudget]: which budget is used up, and what to do.
	Notice string
	// Remedy is shown to an administrator if Kind is [KindAuth]: whose key was refused, and where to
	// set another.
	Remedy string
	// Filtered is set if the provider's content filter refused the request, AboutTools if the refusal is
	// about a tool.
	Filtered, AboutTools bool
	Err                  error
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

// ErrNoAnswer is wrapped by the error of a turn in which the model's answer was empty twice.
var ErrNoAnswer = errors.New("empty answer")

// ErrSuspended ends a turn in which the gate left a call open, such as one that waits for approval.
// Afterwards the turn is run again with the stored history.
var ErrSuspended = errors.New("agent: the turn waits for an approval")
