package receipts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// Prune deletes the receipts that were closed more than [Age] ago, and calls damaged with those that do
// not decode. If a receipt was closed in the future, due to a wrong clock, its age counts from now on.
// The tallies are computed from the others. Prune returns the number of deleted receipts.
func Prune(ctx context.Context, store storage.Store, now time.Time, damaged func(entry storage.Entry, err error) error) (int, error) {
	removed, all, old := 0, make(hourlyTallies), remover{store: store}
	for entry, err := range Throttle(ctx, store.List(ctx, storage.Range{Prefix: Prefix})) {
		if err != nil {
			return removed, fmt.Errorf("list receipts: %w", err)
		}
		r := new(Receipt)
		if broken := json.Unmarshal(entry.Value, r); broken != nil {
			if err := damaged(entry, broken); err != nil {
				return removed, err
			}
			continue
		}
		age := now.Sub(r.Closed)
		if age >= -Age && age <= Age {
			all.add(r)
			continue
		}
		if age < 0 {
			r.Closed = now
			data, err := json.Marshal(r)
			if err == nil {
				_, err = store.Put(ctx, entry.Key, data, entry.Revision)
			}
			if err != nil && !errors.Is(err, storage.ErrConflict) {
				return removed, fmt.Errorf("store receipt %s: %w", r.Key(), err)
			}
			continue
		}
		if err := old.add(ctx, entry); err != nil {
			return removed, err
		}
		removed++
	}
	if err := old.flush(ctx); err != nil {
		return removed, err
	}
	return removed, errors.Join(all.store(ctx, store, now), pruneIndex(ctx, store, now))
}

const (
	// restEvery is the number of items that [Throttle] yields between two rests, restTime the duration
	// of a rest. A receipt takes about 13 µs, so the scan uses at most an eighth of one processor.
	restEvery = 256
	restTime  = 25 * time.Millisecond
)

// Throttle yields the items of all, with regular rests, so that a scan of all records does not slow the
// chats down.
func Throttle[T any](ctx context.Context, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for item, err := range all {
			if n++; n%restEvery == 0 && err == nil {
				err = retry.Wait(ctx, restTime)
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// removeAtOnce is the number of entries that one write deletes.
const removeAtOnce = 100

// remover deletes entries unless they have changed. It deletes many in one write, because each write
// waits for the disk and delays the chats.
type remover struct {
	store storage.Store
	ops   []storage.Op
}

func (r *remover) add(ctx context.Context, entry storage.Entry) error {
	if r.ops = append(r.ops, storage.Delete(entry.Key, entry.Revision)); len(r.ops) < removeAtOnce {
		return nil
	}
	return r.flush(ctx)
}

func (r *remover) flush(ctx context.Context) error {
	if len(r.ops) == 0 {
		return nil
	}
	_, err := r.store.Write(ctx, r.ops...)
	if errors.Is(err, storage.ErrConflict) { // one of them has changed meanwhile
		err = nil
		for _, op := range r.ops {
			err = cmp.Or(err, remove(ctx, r.store, op.Key, op.Rev))
		}
	}
	if err != nil {
		return fmt.Errorf("remove old entries: %w", err)
	}
	r.ops = r.ops[:0]
	return nil
}

func remove(ctx context.Context, kv storage.KV, key string, rev storage.Revision) error {
	if err := kv.Delete(ctx, key, rev); err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}
