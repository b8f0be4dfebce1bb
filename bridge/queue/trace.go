package queue

import (
	"context"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/receipts"
)

// Trace is the trace state of a job. Its zero value, of an untraced job, takes no room in the record.
type Trace struct {
	// Parent names the root of the trace, as a W3C traceparent. The process that closes the job exports
	// the root, so that there is one, however many processes worked on it.
	Parent string `json:"parent,omitempty"`
	// Turn is when the turn began, Answered when its answer was ready.
	Turn     time.Time `json:"turn,omitzero"`
	Answered time.Time `json:"answered,omitzero"`
}

// Tracer traces jobs. It is called from several goroutines and must not block.
type Tracer interface {
	// Begin starts a job's trace, before the first write of its record.
	Begin(j *Run)
	// Started is called when a job has waited long enough. The job runs under the context that it returns.
	Started(ctx context.Context, j *Run) context.Context
	// WrapObserver returns an observer of the turn that traces each event and passes it on to observe.
	WrapObserver(j *Run, observe func(agent.Event)) func(agent.Event)
	// Sending is called before a part is sent; the function that it returns is called with the outcome.
	Sending(j *Run, p *receipts.Part) (sent func(error))
	// Closed is called when the receipt of a job is on disk.
	Closed(j *Run)
}
