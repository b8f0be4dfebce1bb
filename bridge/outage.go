package bridge

import (
	"context"
	"errors"
	"sync/atomic"

	"oneclaw/storage"
)

// trackedStore is a store that records whether its last write failed. While writes fail, no model is
// asked for a reply that could not be stored.
type trackedStore struct {
	storage.Store
	failing atomic.Bool
}

// recordOutcome records whether a write failed. A write that was cancelled, or rejected because of its
// content, does not count.
func (s *trackedStore) recordOutcome(ctx context.Context, err error) {
	switch {
	case err == nil:
		s.failing.Store(false)
	case errors.Is(err, storage.ErrConflict), errors.Is(err, storage.ErrInvalid), errors.Is(ctx.Err(), context.Canceled):
	default:
		s.failing.Store(true)
	}
}

func (s *trackedStore) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	last, err := s.Store.Append(ctx, log, after, records...)
	s.recordOutcome(ctx, err)
	return last, err
}

func (s *trackedStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	rev, err := s.Store.Put(ctx, key, value, rev)
	s.recordOutcome(ctx, err)
	return rev, err
}

func (s *trackedStore) Delete(ctx context.Context, key string, rev storage.Revision) error {
	err := s.Store.Delete(ctx, key, rev)
	s.recordOutcome(ctx, err)
	return err
}

func (s *trackedStore) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	rev, err := s.Store.Write(ctx, ops...)
	s.recordOutcome(ctx, err)
	return rev, err
}

// WriteDeferred implements storage.Deferrer.
func (s *trackedStore) WriteDeferred(ctx context.Context, due <-chan struct{}, ops ...storage.Op) (storage.Revision, error) {
	rev, err := storage.WriteDeferred(ctx, s.Store, due, ops...)
	s.recordOutcome(ctx, err)
	return rev, err
}

// GetMany implements storage.Many.
func (s *trackedStore) GetMany(ctx context.Context, keys []string) (map[string]storage.Entry, error) {
	return storage.GetMany(ctx, s.Store, keys)
}
