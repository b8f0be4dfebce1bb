package bolt

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"oneclaw/storage"
)

// Bounds of one transaction, which bound its memory. The remaining writes go into the next transaction.
const (
	maxGroup      = 4096
	maxGroupBytes = 32 << 20
)

// write is a change that waits for the writer.
type write struct {
	// apply makes the change in the transaction of b. It returns storage.ErrConflict before it has
	// changed anything; after any other error the transaction must not be committed.
	apply func(b *batch) error
	size  int
	done  chan error
}

// batch is the state of one transaction.
type batch struct {
	tx     *bbolt.Tx
	dirty  bool            // a write has changed something
	events []storage.Event // for the watchers, after the commit
}

// Write implements storage.Store.
func (s *Store) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	return s.write(ctx, "write", ops...)
}

// WriteDeferred implements storage.Deferrer.
func (s *Store) WriteDeferred(ctx context.Context, due <-chan struct{}, ops ...storage.Op) (storage.Revision, error) {
	return s.writeBefore(ctx, due, "write", ops...)
}

func (s *Store) write(ctx context.Context, what string, ops ...storage.Op) (storage.Revision, error) {
	return s.writeBefore(ctx, nil, what, ops...)
}

// writeBefore does a write together with others, at the latest when due is closed; if due is nil, at once.
func (s *Store) writeBefore(ctx context.Context, due <-chan struct{}, what string, ops ...storage.Op) (rev storage.Revision, err error) {
	if err = storage.CheckOps(ops); err == nil {
		apply := func(b *batch) (err error) {
			rev, err = b.apply(ops)
			return err
		}
		if due == nil {
			err = s.submit(ctx, sizeOf(ops), apply)
		} else {
			err = s.submitBefore(ctx, due, sizeOf(ops), apply)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("bolt: %s: %w", what, err)
	}
	return rev, nil
}

func sizeOf(ops []storage.Op) int {
	size := 0
	for _, op := range ops {
		size += len(op.Value)
		for _, r := range op.Records {
			size += len(r.Data)
		}
	}
	return size
}

// apply applies the operations of one write, after it has checked all of them.
func (b *batch) apply(ops []storage.Op) (rev storage.Revision, err error) {
	kv, logs := b.tx.Bucket(bucketKV), b.tx.Bucket(bucketLogs)
	for _, op := range ops {
		if err := checkExpected(kv, logs, op); err != nil {
			return 0, err
		}
	}
	for _, op := range ops {
		switch {
		case op.Kind == storage.KindCheck:
			continue
		case op.Kind == storage.KindAppend:
			err = appendRecords(logs, op.Log, op.After, op.Records)
		case op.Kind == storage.KindDelete && kv.Get([]byte(op.Key)) == nil:
			continue // with Any this is no conflict
		default:
			rev, err = b.applyChange(kv, op, rev)
		}
		if err != nil {
			return 0, err
		}
		b.dirty = true
	}
	return rev, nil
}

// checkExpected returns storage.ErrConflict if an operation expects another revision or position.
func checkExpected(kv, logs *bbolt.Bucket, op storage.Op) error {
	if op.Kind == storage.KindAppend {
		last, err := lastPosition(logs.Bucket([]byte(op.Log)))
		if err == nil && last != op.After {
			err = storage.ErrConflict
		}
		return err
	}
	present, err := currentRevision(kv, op.Key)
	missing := op.Kind == storage.KindDelete && present == storage.Absent
	if err == nil && op.Rev != storage.Any && (op.Rev != present || missing) {
		err = storage.ErrConflict
	}
	return err
}

// applyChange puts or deletes a key, with the revision of the write if that is already assigned. A
// deletion also gets a revision, so that the next version of the key has a higher one.
func (b *batch) applyChange(kv *bbolt.Bucket, op storage.Op, rev storage.Revision) (storage.Revision, error) {
	if rev == storage.Absent {
		seq, err := kv.NextSequence()
		if err != nil {
			return 0, err
		}
		rev = storage.Revision(seq)
	}
	deleted := op.Kind == storage.KindDelete
	b.events = append(b.events, storage.Event{Entry: storage.Entry{Key: op.Key, Value: op.Value, Revision: rev}, Deleted: deleted})
	if deleted {
		return rev, kv.Delete([]byte(op.Key))
	}
	return rev, kv.Put([]byte(op.Key), encodeValue(rev, op.Value))
}

// submit passes a change to the writer and waits for the result. Once the writer has taken the change,
// ctx no longer matters: the result needs only one commit, and waiting is the only way to know the
// outcome.
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

// submitBefore is submit for a change that waits for others. When the change is due, it wakes the writer
// with an empty write.
func (s *Store) submitBefore(ctx context.Context, due <-chan struct{}, size int, apply func(*batch) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	w := &write{apply: apply, size: size, done: make(chan error, 1)}
	select {
	case s.deferred <- w:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-w.done:
		return err
	case <-due:
	case <-s.closing:
	}
	select {
	case err := <-w.done:
		return err
	case s.writes <- &write{apply: func(*batch) error { return nil }, done: make(chan error, 1)}:
		return <-w.done
	}
}

func (s *Store) writeAll() {
	var waiting []*write
	size := 0
	for {
		select {
		case w, ok := <-s.writes:
			if !ok {
				return // no caller is left, not even of a deferred write
			}
			waiting = s.gather(append(waiting, w))
		case w := <-s.deferred:
			waiting, size = append(waiting, w), size+w.size
			if len(waiting) < maxGroup && size < maxGroupBytes {
				continue
			}
		}
		s.commit(waiting)
		waiting, size = nil, 0
	}
}

// gather adds the waiting writes to a group.
func (s *Store) gather(group []*write) []*write {
	size := 0
	for _, w := range group {
		size += w.size
	}
	for len(group) < maxGroup && size < maxGroupBytes {
		var next *write
		select {
		case next = <-s.writes:
		case next = <-s.deferred:
		default:
		}
		if next == nil {
			return group // no write waits, or the store is closed
		}
		group = append(group, next)
		size += next.size
	}
	return group
}

// commit applies a group and returns its result to each write.
func (s *Store) commit(group []*write) {
	answers := make([]error, len(group))
	b, committing, err := s.attempt(group, answers)
	s.touchWritten(len(group))
	switch {
	case err == nil:
		s.watchers.Publish(b.events)
	case !committing && len(group) > 1:
		// One of the writes could not be applied; retry each alone.
		for _, w := range group {
			s.commit([]*write{w})
		}
		return
	default:
		s.log.Error("a group of writes failed", "file", s.path, "writes", len(group), "err", err)
		if committing {
			// The new state may be in the file nevertheless.
			s.watchers.End(storage.ErrLagged)
		}
		// A conflict may be caused by another write of this group, so its outcome is as unknown as that
		// of the rest.
		for i := range answers {
			answers[i] = err
		}
	}
	for i, w := range group {
		w.done <- answers[i]
	}
}

// attempt runs a group in one transaction. The result committing reports whether the commit was reached.
// A group that changes nothing needs no commit.
func (s *Store) attempt(group []*write, answers []error) (b batch, committing bool, err error) {
	err = recoverFaults(func() error {
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
