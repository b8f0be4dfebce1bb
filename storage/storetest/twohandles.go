package storetest

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"oneclaw/storage"
)

// alternatingStore is a store whose calls alternate between two handles.
type alternatingStore struct {
	handles [2]storage.Store
	calls   atomic.Uint64
}

func (t *alternatingStore) next() storage.Store { return t.handles[t.calls.Add(1)%2] }

func (t *alternatingStore) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	return t.next().Append(ctx, log, after, records...)
}

func (t *alternatingStore) Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error] {
	return t.next().Records(ctx, log, q)
}

func (t *alternatingStore) Drop(ctx context.Context, log string) error {
	return t.next().Drop(ctx, log)
}

func (t *alternatingStore) Erase(ctx context.Context, log string, left ...storage.Record) error {
	return t.next().Erase(ctx, log, left...)
}

func (t *alternatingStore) Logs(ctx context.Context, r storage.Range) iter.Seq2[string, error] {
	return t.next().Logs(ctx, r)
}

func (t *alternatingStore) Get(ctx context.Context, key string) (storage.Entry, error) {
	return t.next().Get(ctx, key)
}

func (t *alternatingStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	return t.next().Put(ctx, key, value, rev)
}

func (t *alternatingStore) Delete(ctx context.Context, key string, rev storage.Revision) error {
	return t.next().Delete(ctx, key, rev)
}

func (t *alternatingStore) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	return t.next().List(ctx, r)
}

func (t *alternatingStore) Watch(ctx context.Context, prefixes ...string) iter.Seq2[storage.Event, error] {
	return t.next().Watch(ctx, prefixes...)
}

func (t *alternatingStore) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	return t.next().Write(ctx, ops...)
}

func (t *alternatingStore) Close() error {
	return errors.Join(t.handles[1].Close(), t.handles[0].Close())
}
