package queue

import (
	"context"
	"errors"
	"fmt"

	"oneclaw/storage"
)

// fenced returns the operations of a write that puts this process's token on a job, with its fence if
// other processes use the store.
func (s Store) fenced(j *Run, ops ...storage.Op) []storage.Op {
	if j.LeaseToken == "" {
		return ops
	}
	return append(ops, s.Fence(j.LeaseToken))
}

// over reports whether the lease whose token a job was to get has ended.
func (s Store) over(ctx context.Context, j *Run) (bool, error) {
	if s.Fence == nil || j.LeaseToken == "" {
		return false, nil
	}
	check := s.Fence(j.LeaseToken)
	lease, err := s.Store.Get(ctx, check.Key)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return false, fmt.Errorf("read %s: %w", check.Key, err)
	}
	return lease.Revision != check.Rev, nil
}

// writeClaimed writes a job of another lease with its new token.
func (s Store) writeClaimed(ctx context.Context, j *Run) error {
	if s.Fence == nil {
		return s.Put(ctx, j)
	}
	op, err := j.Record()
	if err != nil {
		return err
	}
	rev, err := s.Store.Write(ctx, s.fenced(j, op)...)
	if err != nil {
		return fmt.Errorf("store job %s: %w", j.Key(), err)
	}
	j.Rev = rev
	return nil
}
