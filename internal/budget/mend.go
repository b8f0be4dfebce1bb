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

// mend moves a record that cannot be decoded aside, and replaces it by what follows from other
// records.
func (b *accountBook) mend(ctx context.Context, entry storage.Entry) (*record, error) {
	if err := b.damaged(ctx, entry); err != nil {
		return nil, fmt.Errorf("set %s aside: %w", entry.Key, err)
	}
	sum, err := recompute(ctx, b.store, entry.Key)
	if err != nil {
		return nil, err
	}
	r := &record{Sum: sum}
	if strings.HasPrefix(entry.Key, everKey) {
		r.Last = b.day
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", entry.Key, err)
	}
	r.rev, err = b.store.Put(ctx, entry.Key, data, entry.Revision)
	if errors.Is(err, storage.ErrConflict) {
		return b.read(ctx, entry.Key) // another process was faster
	}
	if err != nil {
		return nil, fmt.Errorf("replace %s: %w", entry.Key, err)
	}
	return r, nil
}

// recompute recomputes the sum of a damaged account. Each call is charged to one user, to one chat
// and to all, so each of them follows from the others. Reservations, raises, and the usage of
// models and groups cannot be recomputed.
func recompute(ctx context.Context, kv storage.KV, key string) (Sum, error) {
	period, rest, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
	kind, _, _ := strings.Cut(rest, "/")
	of := func(k Kind) string { return keyOf(period, Account{Kind: k}) }
	switch chat, ever := strings.CutPrefix(key, everKey); {
	case ever:
		newest, err := kv.Get(ctx, newestKey)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return Sum{}, fmt.Errorf("read the day: %w", err)
		}
		last, err := time.Parse(time.DateOnly, string(newest.Value))
		if err != nil {
			return Sum{}, nil // no day has begun
		}
		return sumOfDays(ctx, kv, last, keepNamedDays, Account{KindChat, chat})
	case Kind(kind) == KindMonth:
		first, err := time.Parse("2006-01", period)
		if err != nil {
			return Sum{}, nil // it is not used any more
		}
		return sumOfDays(ctx, kv, first.AddDate(0, 1, -1), 31, Account{Kind: KindTotal})
	case Kind(kind) == KindTotal:
		return sumOf(ctx, kv, of(KindUser), "")
	case Kind(kind) == KindUser, Kind(kind) == KindChat:
		across := map[Kind]Kind{KindUser: KindChat, KindChat: KindUser}[Kind(kind)]
		all, err := sumOf(ctx, kv, of(across), "")
		if err != nil {
			return Sum{}, err
		}
		others, err := sumOf(ctx, kv, of(Kind(kind)), key)
		return all.minus(others), err
	}
	return Sum{}, nil
}

// sumOf adds up the records below a prefix, except one and damaged ones.
func sumOf(ctx context.Context, kv storage.KV, prefix, but string) (all Sum, err error) {
	for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return Sum{}, fmt.Errorf("list the accounts of %s: %w", prefix, err)
		}
		var one Sum
		if entry.Key != but && json.Unmarshal(entry.Value, &one) == nil {
			all = all.plus(one)
		}
	}
	return all, nil
}

// sumOfDays adds up the usage of an account on the n days up to one.
func sumOfDays(ctx context.Context, kv storage.KV, last time.Time, n int, a Account) (all Sum, err error) {
	for i := range n {
		one, _, err := readSum(ctx, kv, keyOf(last.AddDate(0, 0, -i).Format(time.DateOnly), a))
		if err != nil {
			return Sum{}, err
		}
		all = all.plus(one)
	}
	return all, nil
}

// readSum reads the usage of an account; for a damaged record it recomputes it.
func readSum(ctx context.Context, kv storage.KV, key string) (sum Sum, found bool, err error) {
	entry, err := kv.Get(ctx, key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return Sum{}, false, nil
	case err != nil:
		return Sum{}, false, fmt.Errorf("read %s: %w", key, err)
	case json.Unmarshal(entry.Value, &sum) != nil:
		sum, err = recompute(ctx, kv, key)
	}
	return sum, true, err
}
