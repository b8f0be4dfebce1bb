package queue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"oneclaw/storage"
)

// Run is a job in the memory of the process that works on it. Nothing of it but the job is
// stored: the process that takes the job over begins with an empty one.
type Run struct {
	Job
	// Rev is the revision of the record of the job that is known here.
	Rev storage.Revision
	// Since is when this process began to wait with it, for its turn or for a decision; zero
	// where an earlier process did.
	Since time.Time
	// Found is set where a restart found the job: its turn may have begun.
	Found bool
	// Restarted is set where a restart or a takeover found it, until that is counted.
	Restarted bool
	// HasSlot says that it is counted among the turns that run.
	HasSlot bool
	// Suspended says that its last run ended with a wait for an approval.
	Suspended bool
	// Interrupted says that a /stop has ended a turn, dropped how many messages it took out of
	// their queue.
	Interrupted bool
	Dropped     int
	// Pieces are the messages behind it that are to become part of it before its turn.
	Pieces []*Run
	// PossiblyJoined says that it may have become part of another job although the write reported an
	// error.
	PossiblyJoined bool

	// What the queue knows of it. waits says that it is counted among those of its sender that wait,
	// complete that nothing more of it is waited for; endCause is why it ends, where a command ended it
	// while it waited for an approval.
	waits, complete bool
	endCause        error
}

// Order compares jobs of a chat: a turn that has begun comes before all others, whatever was
// accepted before it and was not known then.
func Order(a, b *Run) int {
	if a.Unstarted != b.Unstarted {
		if b.Unstarted {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Seq, b.Seq)
}

// Clone is a copy that may be changed while another goroutine looks at the run.
func (j *Run) Clone() *Run {
	copied := *j
	if work, ok := j.Work.(Cloner); ok {
		copied.Work = work.Clone()
	}
	return &copied
}

// Record is the operation that saves a job.
func (j *Run) Record() (storage.Op, error) {
	data, err := json.Marshal(&j.Job)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode job %s: %w", j.Key(), err)
	}
	return storage.Put(OpenPrefix+j.Key(), data, j.Rev), nil
}
