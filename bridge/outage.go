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
	// onDoubt, if not nil, is called with each key that a write may have put although it failed.
	onDoubt func(key string)
}

// recordOutcome records whether a write failed. A write that was cancelled, met a conflict, or was
// rejected because of its content does not count.
func (s *trackedStore) recordOutcome(ctx context.Context, err error, ops ...storage.Op) {
	switch {
	case err == nil:
		s.failing.Store(false)
		return
	case errors.Is(err, storage.ErrConflict), errors.Is(err, storage.ErrInvalid):
		return
	case errors.Is(ctx.Err(), context.Canceled):
	default:
		s.failing.Store(true)
	}
	for _, op := range ops {
		if s.onDoubt != nil && op.Kind == storage.KindPut {
			s.onDoubt(op.Key)
		}
	}
}

// Append implements storage.Log.
func (s *trackedStore) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	last, err := s.Store.Append(ctx, log, after, records...)
	s.recordOutcome(ctx, err)
	return last, err
}

// Put implements storage.KV.
func (s *trackedStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	rev, err := s.Store.Put(ctx, key, value, rev)
	s.recordOutcome(ctx, err, storage.Put(key, nil, rev))
	return rev, err
}

// Delete implements storage.KV.
func (s *trackedStore) Delete(ctx context.Context, key string, rev storage.Revision) error {
	err := s.Store.Delete(ctx, key, rev)
	s.recordOutcome(ctx, err)
	return err
}

// Write implements storage.Store.
func (s *trackedStore) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	rev, err := s.Store.Write(ctx, ops...)
	s.recordOutcome(ctx, err, ops...)
	return rev, err
}

// WriteDeferred implements storage.Deferrer.
func (s *trackedStore) WriteDeferred(ctx context.Context, due <-chan struct{}, ops ...storage.Op) (storage.Revision, error) {
	rev, err := storage.WriteDeferred(ctx, s.Store, due, ops...)
	s.recordOutcome(ctx, err, ops...)
	return rev, err
}

// GetMany implements storage.ManyGetter.
func (s *trackedStore) GetMany(ctx context.Context, keys []string) (map[string]storage.Entry, error) {
	return storage.GetMany(ctx, s.Store, keys)
}
