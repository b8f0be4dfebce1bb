package queue

import (
	"context"
	"fmt"

	"oneclaw/storage"
)

// withFence adds the check of the job's lease to the operations of a write, unless the job has no lease
// token.
func (s Store) withFence(j *Run, ops ...storage.Op) []storage.Op {
	if j.LeaseToken == "" {
		return ops
	}
	return append(ops, s.Fence(j.LeaseToken))
}

// leaseEnded reports whether the lease whose token a job has in memory has ended.
func (s Store) leaseEnded(ctx context.Context, j *Run) (bool, error) {
	if s.Fence == nil || j.LeaseToken == "" {
		return false, nil
	}
	check := s.Fence(j.LeaseToken)
	lease, err := storage.Find(ctx, s.Store, check.Key)
	return err == nil && lease.Revision != check.Rev, err
}

// writeClaimed writes a job that belonged to another lease with its new token.
func (s Store) writeClaimed(ctx context.Context, j *Run) error {
	if s.Fence == nil {
		return s.Put(ctx, j)
	}
	op, err := j.Record()
	if err != nil {
		return err
	}
	rev, err := s.Store.Write(ctx, s.withFence(j, op)...)
	if err != nil {
		return fmt.Errorf("store job %s: %w", j.Key(), err)
	}
	j.Rev = rev
	return nil
}
