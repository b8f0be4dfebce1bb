package budget

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"oneclaw/storage"
)

// recompute recomputes the sum of a damaged account. Each call is charged to one user, to one chat
// and to all, so each of them follows from the others. Raises, and the usage of
// models and groups cannot be recomputed.
func recompute(ctx context.Context, kv storage.KV, key string, today time.Time) (Usage, error) {
	period, rest, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
	kind, _, _ := strings.Cut(rest, "/")
	of := func(k Kind) string { return keyOf(period, Account{Kind: k}) }
	switch chat, ever := strings.CutPrefix(key, chatTotalPrefix); {
	case ever:
		return sumOfDays(ctx, kv, today, keepNamedDays, Account{KindChat, chat})
	case Kind(kind) == KindMonth:
		first, err := time.Parse("2006-01", period)
		if err != nil {
			return Usage{}, nil // it is not used any more
		}
		last := first.AddDate(0, 1, -1)
		return sumOfDays(ctx, kv, last, last.Day(), Account{Kind: kindTotal})
	case Kind(kind) == kindTotal:
		return sumUnder(ctx, kv, of(KindUser), "")
	case Kind(kind) == KindUser, Kind(kind) == KindChat:
		across := map[Kind]Kind{KindUser: KindChat, KindChat: KindUser}[Kind(kind)]
		all, err := sumUnder(ctx, kv, of(across), "")
		if err != nil {
			return Usage{}, err
		}
		others, err := sumUnder(ctx, kv, of(Kind(kind)), key)
		if all = all.minus(others); all.Tokens() < 0 { // another record is damaged, too
			all = Usage{}
		}
		return all, err
	}
	return Usage{}, nil
}

// sumUnder adds up the records below a prefix, except damaged ones and the one with the key but.
func sumUnder(ctx context.Context, kv storage.KV, prefix, but string) (all Usage, err error) {
	for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return Usage{}, fmt.Errorf("list the accounts of %s: %w", prefix, err)
		}
		var one Usage
		if entry.Key != but && json.Unmarshal(entry.Value, &one) == nil {
			all = all.plus(one)
		}
	}
	return all, nil
}

// sumOfDays adds up the usage of an account on the n days that end with last.
func sumOfDays(ctx context.Context, kv storage.KV, last time.Time, n int, a Account) (all Usage, err error) {
	for i := range n {
		one, _, err := readSum(ctx, kv, keyOf(last.AddDate(0, 0, -i).Format(time.DateOnly), a))
		if err != nil {
			return Usage{}, err
		}
		all = all.plus(one)
	}
	return all, nil
}

// readSum reads the usage of an account; for a damaged record it recomputes it.
func readSum(ctx context.Context, kv storage.KV, key string) (sum Usage, found bool, err error) {
	sum, rev, err := storage.Load[Usage](ctx, kv, key)
	if err != nil && rev != storage.Absent {
		sum, err = recompute(ctx, kv, key, time.Time{}) // no total of a chat
	}
	return sum, rev != storage.Absent, err
}
