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

// Day is what all together used on a day.
type Day struct {
	// Day is such as 2006-01-02.
	Day string
	Sum
}

// Days returns what was used on the last days, the oldest first, the last being that of a time in
// its zone.
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

// Limits are the present bounds of all accounts, without their raises.
func (l *Ledger) Limits(ctx context.Context) (Limits, error) { return l.cfg.Limits(ctx) }

// Spent yields the accounts of a kind on a day in the order of their names, behind one of them;
// empty for all.
func Spent(ctx context.Context, kv storage.KV, day string, kind Kind, after string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		r := storage.Range{Prefix: keyOf(day, Account{Kind: kind})}
		if after != "" {
			r.After = r.Prefix + after
		}
		for entry, err := range kv.List(ctx, r) {
			line := Line{Account: Account{Kind: kind, Name: strings.TrimPrefix(entry.Key, r.Prefix)}}
			if err == nil && json.Unmarshal(entry.Value, &line.Spent) != nil {
				continue // one that is damaged hides no other
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// Used returns what a person has used on the days up to one, as far as that is kept, by the days.
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
