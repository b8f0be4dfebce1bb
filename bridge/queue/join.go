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

// Joining returns the operations that make other messages part of a job: its record names them, and
// each of them is closed with a receipt that names it. If the caller does all in one write, a crash
// loses none of them, and none is answered twice.
func (s Store) Joining(j *Run, others []*Run, now time.Time) ([]storage.Op, error) {
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

// Reload reads jobs whose state is uncertain, and returns those of all that are still open.
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
		j.become(known)
		open = append(open, j)
	}
	return open, gone, nil
}

// Resolve is Reload for one job: if it is not this process's any more, the error is [ErrLost].
func (s Store) Resolve(ctx context.Context, j *Run) error {
	_, gone, err := s.Reload(ctx, []*Run{j})
	if len(gone) > 0 {
		return fmt.Errorf("%s: %w", j.Key(), ErrLost)
	}
	return err
}

// become takes over the record's state. The chat stays: it may have moved.
func (j *Run) become(known *Run) {
	m, k := &j.Message, known.Message
	m.Text, m.Files, m.Skipped, m.Quoted, m.Cut = k.Text, k.Files, k.Skipped, k.Quoted, k.Cut
	j.Kind, j.Rev, j.Joined, j.PossiblyJoined = known.Kind, known.Rev, known.Joined, false
	j.PieceCount, j.OwnLength = known.PieceCount, known.OwnLength
}

// tries bounds the attempts at a write that conflicts with edits.
const tries = 3

// Join makes other messages part of a job, within a write of the caller. It returns those that became
// part of it; gone ones belong to no job here any more. After an error the state of the others is
// uncertain: they may have become part of it all the same.
func (s Store) Join(ctx context.Context, j *Run, others []*Run, write func(others []*Run) error) (joined, gone []*Run, err error) {
	for range tries {
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
		if lost := s.Check(ctx, j); lost != nil {
			return nil, gone, lost
		}
	}
	return nil, gone, err
}
