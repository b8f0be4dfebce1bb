package queue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"oneclaw/storage"
)

// Run is a job in the memory of the process that works on it. Only the Job is stored: a process that
// takes the job over begins with an otherwise empty one.
type Run struct {
	Job
	// Rev is the last known revision of the job's record.
	Rev storage.Revision
	// Since is when this process began to wait with it, for a slot or a decision; zero if an earlier
	// process did.
	Since time.Time
	// Found says that a restart found the job: its turn may have begun.
	Found bool
	// Restarted says that a restart or a takeover found it, until that is counted.
	Restarted bool
	// HasSlot says that it counts among the running turns.
	HasSlot bool
	// Suspended says that its last run ended with a wait for an approval.
	Suspended bool
	// Interrupted says that a /stop has ended a turn, dropped how many messages it removed from their
	// queue.
	Interrupted bool
	Dropped     int
	// Pieces are the later messages that will become part of it before its turn.
	Pieces []*Run
	// PossiblyJoined says that it may have become part of another job although the write returned an
	// error.
	PossiblyJoined bool

	// State of the queue. waits: it counts among the waiting jobs of its sender. complete: no more
	// pieces are awaited. endCause: why a command ended it while it waited for an approval.
	waits, complete bool
	endCause        error
}

// Order compares jobs of a chat: a turn that has begun comes before all others, even those accepted
// before it that were not known then.
func Order(a, b *Run) int {
	if a.Unstarted != b.Unstarted {
		if b.Unstarted {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Seq, b.Seq)
}

// Clone returns a copy that may be changed while another goroutine reads the run.
func (j *Run) Clone() *Run {
	copied := *j
	if work, ok := j.Work.(Cloner); ok {
		copied.Work = work.Clone()
	}
	return &copied
}

// Record returns the operation that saves a job.
func (j *Run) Record() (storage.Op, error) {
	data, err := json.Marshal(&j.Job)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode job %s: %w", j.Key(), err)
	}
	return storage.Put(OpenPrefix+j.Key(), data, j.Rev), nil
}
