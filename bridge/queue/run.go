package queue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"oneclaw/storage"
)

// Run is a job in the memory of the process that works on it. Only the Job is stored. A process that
// takes the job over begins with zero values in the other fields.
type Run struct {
	Job
	// Rev is the last known revision of the job's record.
	Rev storage.Revision
	// WaitingSince is when the job began to wait in this process, for a slot or a decision; zero if the
	// wait began in an earlier process.
	WaitingSince time.Time
	// Found says that the job was read from the store, so its turn may have begun earlier.
	Found bool
	// Restarted says that the job was taken over after a restart that is not counted yet.
	Restarted bool
	// HasSlot says that the job occupies one of the slots for turns.
	HasSlot bool
	// Suspended says that the job's last run ended because it waits for a decision or for background
	// tasks.
	Suspended bool
	// Interrupted says that the job is a stop command and has ended a turn. Dropped is the number of
	// messages that it removed from their queue.
	Interrupted bool
	Dropped     int
	// Pieces are the later messages that become part of the job's message before its turn begins.
	Pieces []*Run
	// PossiblyJoined says that the job may have become part of another one although the write returned
	// an error.
	PossiblyJoined bool

	// State of the queue. isCounted: the job counts among the waiting jobs of its sender. complete: no
	// more pieces are awaited. endCause: why a command ended the job while it waited.
	isCounted, complete bool
	endCause            error
	// hasBackgroundSlot says that the slot counts among those of background jobs.
	hasBackgroundSlot bool
}

// Compare compares jobs of a chat. A turn that has begun comes before all others, even before jobs that
// were accepted earlier but were not known when it began.
func Compare(a, b *Run) int {
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

// NewOps returns the operations that store a new job, or another version of an unclaimed one: its record,
// and a notice if it is unclaimed.
func (j *Run) NewOps() ([]storage.Op, error) {
	record, err := j.Record()
	ops := []storage.Op{record}
	if j.Unclaimed {
		ops = append(ops, NewNotice(j.Origin(), j.Key()))
	}
	return ops, err
}

// Record returns the operation that saves a job.
func (j *Run) Record() (storage.Op, error) {
	data, err := json.Marshal(&j.Job)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode job %s: %w", j.Key(), err)
	}
	return storage.Put(OpenPrefix+j.Key(), data, j.Rev), nil
}
