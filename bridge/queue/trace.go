package queue

import (
	"context"

	"oneclaw/agent"
	"oneclaw/bridge/receipts"
)

// Tracer traces jobs. It is called from several goroutines and must not block.
type Tracer interface {
	// StartRun is called when a job begins to run in this process. The job runs under the context that it
	// returns.
	StartRun(ctx context.Context, j *Run) context.Context
	// WrapObserver returns an observer of the turn that traces each event and passes it on to observe.
	WrapObserver(j *Run, observe func(agent.Event)) func(agent.Event)
	// StartSend is called before a part is sent. The returned function is called with the send's error.
	StartSend(j *Run, p *receipts.Part) (sent func(error))
	// End is called when a run is over: the receipt is on disk, or the job waits for a decision, is lost to
	// another process, or is left to the next one.
	End(j *Run)
}
