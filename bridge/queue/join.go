package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// JoinOps returns the operations that make other messages part of a job. The job's record names them,
// and each is closed with a receipt that names the job. If the caller does all operations in one write,
// no message is lost in a crash, and none is answered twice.
func (s Store) JoinOps(j *Run, others []*Run, now time.Time) ([]storage.Op, error) {
	joined := *j
	joined.Joined = slices.Clone(j.Joined)
	ops := make([]storage.Op, 1, 1+2*len(others))
	for _, o := range others {
		joined.Joined = append(joined.Joined, o.Key())
		closed := *o
		closed.State, closed.JoinedTo, closed.Closed = receipts.Joined, j.Key(), now
		receipt, err := closed.Receipt().Ops(storage.Absent)
		if err != nil {
			return nil, err
		}
		ops = append(append(ops, receipt...), storage.Delete(OpenPrefix+o.Key(), o.Rev))
	}
	var err error
	ops[0], err = joined.Record()
	return ops, err
}

// Reload reads the jobs whose state is uncertain, and returns all jobs that are still open, and those
// that are gone.
func (s Store) Reload(ctx context.Context, some []*Run) (open, gone []*Run, err error) {
	for i, j := range some {
		if !j.PossiblyJoined {
			open = append(open, j)
			continue
		}
		known, err := s.Load(ctx, j.Key())
		switch {
		case err != nil && !IsDamaged(err):
			return append(open, some[i:]...), gone, err
		case err != nil || known == nil || known.LeaseToken != j.LeaseToken:
			gone = append(gone, j)
			continue
		}
		j.update(known)
		open = append(open, j)
	}
	return open, gone, nil
}

// ReloadOne is Reload for one job. It returns [ErrLost] if the job no longer belongs to this process.
func (s Store) ReloadOne(ctx context.Context, j *Run) error {
	_, gone, err := s.Reload(ctx, []*Run{j})
	if len(gone) > 0 {
		return fmt.Errorf("%s: %w", j.Key(), ErrLost)
	}
	return err
}

// update copies the state of a record into the job, except the chat, which may have moved.
func (j *Run) update(known *Run) {
	chat := j.Message.Chat
	j.Message = known.Message
	j.Message.Chat = chat
	j.Kind, j.Rev, j.Joined, j.PossiblyJoined = known.Kind, known.Rev, known.Joined, false
	j.PieceCount, j.OwnLength = known.PieceCount, known.OwnLength
}

// maxJoinTries bounds the attempts at a write that conflicts with edits.
const maxJoinTries = 3

// Join calls write to make other messages part of a job, and returns those that became part of it. Those
// in gone no longer belong to this process. After an error the state of the others is uncertain, because
// they may have become part of the job nevertheless.
func (s Store) Join(ctx context.Context, j *Run, others []*Run, write func(others []*Run) error) (joined, gone []*Run, err error) {
	for range maxJoinTries {
		var lost []*Run
		if others, lost, err = s.Reload(ctx, others); err != nil {
			return nil, gone, err
		}
		gone = append(gone, lost...)
		err = write(others)
		if err == nil {
			return others, gone, nil
		}
		for _, o := range others {
			o.PossiblyJoined = true
		}
		if !errors.Is(err, storage.ErrConflict) {
			return nil, gone, err
		}
		if lost := s.Refresh(ctx, j); lost != nil {
			return nil, gone, lost
		}
	}
	return nil, gone, err
}
