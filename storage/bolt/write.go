package bolt

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"oneclaw/storage"
)

// One transaction takes at most so many writes and about so many bytes, so that
// its memory is bounded; what is left goes into the next.
const (
	maxGroup      = 4096
	maxGroupBytes = 32 << 20
)

// write is a change that waits for the writer.
type write struct {
	// apply makes the change in the transaction of b. It returns
	// storage.ErrConflict before it has touched anything, any other error means
	// that the transaction must not be committed.
	apply func(b *batch) error
	size  int
	done  chan error
}

// batch is what the writes of one transaction have done so far.
type batch struct {
	tx     *bbolt.Tx
	dirty  bool
	events []storage.Event
}

// submit hands a change to the writer and waits for the answer. Once the writer
// has taken it ctx no longer matters: the answer is then a matter of one commit,
// and it is the only way to know what happened.
func (s *Store) submit(ctx context.Context, size int, apply func(*batch) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	w := &write{apply: apply, size: size, done: make(chan error, 1)}
	select {
	case s.writes <- w:
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-w.done
}

// writeAll is the writer.
func (s *Store) writeAll() {
	for w := range s.writes {
		s.commit(s.gather(w))
	}
}

// gather returns w and the writes that wait now.
func (s *Store) gather(w *write) []*write {
	group, size := []*write{w}, w.size
	for len(group) < maxGroup && size < maxGroupBytes {
		select {
		case next, ok := <-s.writes:
			if !ok {
				return group
			}
			group = append(group, next)
			size += next.size
		default:
			return group
		}
	}
	return group
}

// commit applies a group and answers each of its writes.
func (s *Store) commit(group []*write) {
	answers := make([]error, len(group))
	b, committing, err := s.attempt(group, answers)
	s.touchWritten(len(group))
	switch {
	case err == nil:
		s.hub.publish(b.events)
	case !committing && len(group) > 1:
		// One of them could not be applied; alone, the others can.
		for _, w := range group {
			s.commit([]*write{w})
		}
		return
	default:
		s.log.Error("nothing could be written", "file", s.path, "writes", len(group), "err", err)
		if committing {
			// The new state may be in the file all the same.
			s.hub.lag()
		}
		// A conflict may have been one with a write of this group, so it is as
		// unknown as the rest.
		for i := range answers {
			answers[i] = err
		}
	}
	for i, w := range group {
		w.done <- answers[i]
	}
}

// attempt runs a group in one transaction. It reports in committing whether it
// got as far as the commit. A group of which nothing was to be changed costs no
// commit.
func (s *Store) attempt(group []*write, answers []error) (b batch, committing bool, err error) {
	err = guard(func() error {
		tx, err := s.db.Begin(true)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after a commit
		b.tx = tx
		for i, w := range group {
			answers[i] = w.apply(&b)
			if answers[i] != nil && !errors.Is(answers[i], storage.ErrConflict) {
				return answers[i]
			}
		}
		if !b.dirty {
			return nil
		}
		committing = true
		return tx.Commit()
	})
	return b, committing, err
}
