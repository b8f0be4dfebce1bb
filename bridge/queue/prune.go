package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// Prune removes receipts that were closed longer ago than ReceiptAge. One from the future
// was written when the clock was wrong: it counts from now on. Those that stay are summed up.
func (s Store) Prune(ctx context.Context, now time.Time, damaged func(*DamagedError) error) (int, error) {
	removed, all, old := 0, make(sums), remover{s: s}
	for entry, err := range Throttled(ctx, s.Store.List(ctx, storage.Range{Prefix: ReceiptPrefix})) {
		if err != nil {
			return removed, fmt.Errorf("list receipts: %w", err)
		}
		j := &Job{}
		if d, is := errors.AsType[*DamagedError](Decode(entry, j)); is {
			if err := damaged(d); err != nil {
				return removed, err
			}
			continue
		}
		age := now.Sub(j.Closed)
		if age >= -ReceiptAge && age <= ReceiptAge {
			all.add(j)
			continue
		}
		if age < 0 {
			j.Closed = now
			if _, err := Write(ctx, s.Store, entry.Key, j, entry.Revision); err != nil && !errors.Is(err, storage.ErrConflict) {
				return removed, err
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
	return removed, errors.Join(all.keep(ctx, s, now), forgetFinished(ctx, s, now))
}

const (
	// stretch is after how many entries [Throttled] rests, and rest for how long. A receipt takes
	// some 13 µs, so that is an eighth of the time of one processor at most.
	stretch = 256
	rest    = 25 * time.Millisecond
)

// Throttled yields what all yields, and rests again and again: who looks through everything leaves
// the processors to the chats.
func Throttled[T any](ctx context.Context, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for item, err := range all {
			if n++; n%stretch == 0 && err == nil {
				err = retry.Wait(ctx, rest)
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// removeAtOnce is how many entries one write removes.
const removeAtOnce = 100

// remover removes entries unless they have changed, many in one write: one for each would be a
// wait for the disk for each, and the chats would wait with it.
type remover struct {
	s   Store
	ops []storage.Op
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
	_, err := r.s.Store.Write(ctx, r.ops...)
	if errors.Is(err, storage.ErrConflict) { // one of them has changed
		err = nil
		for _, op := range r.ops {
			err = cmp.Or(err, remove(ctx, r.s.Store, op.Key, op.Rev))
		}
	}
	if err != nil {
		return fmt.Errorf("remove what is too old: %w", err)
	}
	r.ops = r.ops[:0]
	return nil
}
