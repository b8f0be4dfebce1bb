package queue

import (
	"context"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/receipts"
)

// Trace is the trace state of a job. For an untraced job it is the zero value, which is not stored.
type Trace struct {
	// Parent names the root span of the trace, as a W3C traceparent. The process that closes the job
	// exports the root span, so that there is only one, however many processes worked on the job.
	Parent string `json:"parent,omitempty"`
	// TurnStarted is when the turn began, AnsweredAt when its answer was ready.
	TurnStarted time.Time `json:"turn,omitzero"`
	AnsweredAt  time.Time `json:"answered,omitzero"`
}

// Tracer traces jobs. It is called from several goroutines and must not block.
type Tracer interface {
	// Begin starts a job's trace, before the first write of its record.
	Begin(j *Run)
	// StartRun is called when a job begins to run. The job runs under the context that it returns.
	StartRun(ctx context.Context, j *Run) context.Context
	// WrapObserver returns an observer of the turn that traces each event and passes it on to observe.
	WrapObserver(j *Run, observe func(agent.Event)) func(agent.Event)
	// StartSend is called before a part is sent. The returned function is called with the send's error.
	StartSend(j *Run, p *receipts.Part) (sent func(error))
	// End is called when the receipt of a job is on disk.
	End(j *Run)
}
