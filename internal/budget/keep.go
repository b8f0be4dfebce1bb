package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/storage"
)

// change reads some sums, and stores what decide makes of them if that returns true. It decides again if
// another process was faster.
func (l *Ledger) change(ctx context.Context, keys []string, decide func(sums) bool) error {
	return storage.Retry(ctx, func() error {
		all, err := l.load(ctx, keys...)
		if err != nil || !decide(all) {
			return err
		}
		ops, err := all.ops()
		if err == nil && len(ops) > 0 {
			_, err = l.cfg.Store.Write(ctx, ops...)
		}
		return err
	})
}

// Move moves the accounts of a chat and its threads to another. It may be repeated.
func (l *Ledger) Move(ctx context.Context, from, to string) error {
	if err := l.fold(ctx, chargesPrefix); err != nil {
		return err
	}
	for _, beginning := range []string{keyOf(l.today(), Account{Kind: KindChat}), chatTotalPrefix} {
		for entry, err := range l.cfg.Store.List(ctx, storage.Range{Prefix: beginning + from}) {
			if err != nil {
				return fmt.Errorf("budget: list the accounts of %s: %w", from, err)
			}
			thread := strings.TrimPrefix(entry.Key, beginning+from)
			if thread != "" && thread[0] != ':' {
				continue
			}
			if err := l.change(ctx, []string{entry.Key, beginning + to + thread}, func(all sums) bool {
				old, next := all[entry.Key], all[beginning+to+thread]
				for _, r := range old.Raises {
					r.Account.Name = to + thread
					next.Raises = append(next.Raises, r)
				}
				next.Usage, next.LastDay = next.plus(old.Usage), max(next.LastDay, old.LastDay)
				*old = record{rev: old.rev}
				return true
			}); err != nil {
				return fmt.Errorf("budget: move the accounts of %s: %w", from, err)
			}
		}
	}
	return nil
}

// prune deletes old records when a day begins. Their age is relative to the last day before it, so that a
// clock that jumps ahead deletes nothing.
func (l *Ledger) prune(ctx context.Context, today string) error {
	kv := l.cfg.Store
	day, err := time.Parse(time.DateOnly, today)
	if err != nil {
		return nil // of a damaged charge
	}
	for n, used := 0, false; !used; n++ {
		if n > keepDays {
			return nil
		}
		day = day.AddDate(0, 0, -1)
		if _, used, err = readSum(ctx, kv, keyOf(day.Format(time.DateOnly), Account{Kind: kindTotal})); err != nil {
			return err
		}
	}
	named := day.AddDate(0, 0, -keepNamedDays).Format(time.DateOnly)
	oldest := day.AddDate(0, 0, -keepDays).Format(time.DateOnly)
	for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return err
		}
		period, rest, _ := strings.Cut(strings.TrimPrefix(entry.Key, prefix), "/")
		kind, _, _ := strings.Cut(rest, "/")
		old := period < oldest || period < named && (Kind(kind) == KindUser || Kind(kind) == KindChat)
		if strings.HasPrefix(entry.Key, chatTotalPrefix) {
			var total record
			old = json.Unmarshal(entry.Value, &total) == nil && total.LastDay < oldest
		}
		if old {
			if err := kv.Delete(ctx, entry.Key, entry.Revision); err != nil && !errors.Is(err, storage.ErrConflict) { // another process prunes too
				return err
			}
		}
	}
	return nil
}
