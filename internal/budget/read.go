package budget

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"oneclaw/storage"
)

// Day is the usage of all on a day.
type Day struct {
	// Day has the form 2006-01-02.
	Day string
	Sum
}

// Days returns the usage of the last n days, the oldest first, up to the day of last in its
// zone.
func Days(ctx context.Context, kv storage.KV, last time.Time, n int) ([]Day, error) {
	days := make([]Day, n)
	for i := range days {
		d := Day{Day: last.AddDate(0, 0, i+1-n).Format(time.DateOnly)}
		var err error
		if d.Sum, _, err = readSum(ctx, kv, keyOf(d.Day, Account{Kind: KindTotal})); err != nil {
			return nil, fmt.Errorf("read what was used on %s: %w", d.Day, err)
		}
		days[i] = d
	}
	return days, nil
}

// Limits returns the current limits, without raises.
func (l *Ledger) Limits(ctx context.Context) (Limits, error) { return l.cfg.Limits(ctx) }

// Spent yields the accounts of a kind on a day, sorted by name, after the given one; empty for
// all.
func Spent(ctx context.Context, kv storage.KV, day string, kind Kind, after string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		r := storage.Range{Prefix: keyOf(day, Account{Kind: kind})}
		if after != "" {
			r.After = r.Prefix + after
		}
		for entry, err := range kv.List(ctx, r) {
			line := Line{Account: Account{Kind: kind, Name: strings.TrimPrefix(entry.Key, r.Prefix)}}
			if err == nil && json.Unmarshal(entry.Value, &line.Spent) != nil {
				continue // a damaged one does not hide others
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// Used returns the usage of a user on the recorded days up to last, by day.
func Used(ctx context.Context, kv storage.KV, user string, last time.Time) (map[string]Sum, error) {
	days := make(map[string]Sum)
	for n := range keepNamedDays {
		day := last.AddDate(0, 0, -n).Format(time.DateOnly)
		sum, found, err := readSum(ctx, kv, keyOf(day, Account{KindUser, user}))
		if err != nil {
			return nil, fmt.Errorf("read what %s used on %s: %w", user, day, err)
		}
		if found {
			days[day] = sum
		}
	}
	return days, nil
}
