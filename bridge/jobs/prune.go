package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oneclaw/storage"
)

// Prune removes receipts that were closed longer ago than ReceiptAge. One from the future
// was written when the clock was wrong: it counts from now on. Those that stay are summed up.
func (s Store) Prune(ctx context.Context, now time.Time, damaged func(*DamagedError) error) (int, error) {
	removed, all := 0, make(sums)
	for entry, err := range s.Store.List(ctx, storage.Range{Prefix: ReceiptPrefix}) {
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
		if err := s.remove(ctx, entry.Key, entry.Revision); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, errors.Join(s.keepTallies(ctx, all, now), s.forgetFinished(ctx, now))
}
