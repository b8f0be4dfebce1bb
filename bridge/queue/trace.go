package queue

import (
	"context"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/receipts"
)

// Trace is what the spans of a job hang on. Its zero value, of a job that no tracer follows,
// takes no room in the record.
type Trace struct {
	// Parent names the root of the trace, in the form of W3C's traceparent. The process that closes the
	// job tells of the root, so that there is one, however many processes worked on it.
	Parent string `json:"parent,omitempty"`
	// Turn is when the turn began, Answered when it had made its answer.
	Turn     time.Time `json:"turn,omitzero"`
	Answered time.Time `json:"answered,omitzero"`
}

// Tracer follows jobs to their ends. It is called from several goroutines and must not wait.
type Tracer interface {
	// Begin gives a job its trace, before the first write of its record.
	Begin(j *Run)
	// Runs is told that a job has waited long enough. What is done for it is done under the
	// context that it returns.
	Runs(ctx context.Context, j *Run) context.Context
	// WrapObserver returns an observer of the turn that traces each event and passes it on to observe.
	WrapObserver(j *Run, observe func(agent.Event)) func(agent.Event)
	// Sending is told that a part is about to be sent, and what it returns how that ended.
	Sending(j *Run, p *receipts.Part) (sent func(error))
	// Closed is told that the receipt of a job is on disk.
	Closed(j *Run)
}
