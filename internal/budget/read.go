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

// Day is the usage of all users on a day.
type Day struct {
	// Day has the form 2006-01-02.
	Day string
	Usage
}

// Days returns the usage of all users on n days, the oldest first. The last one is the day of last,
// in its time zone.
func Days(ctx context.Context, kv storage.KV, last time.Time, n int) ([]Day, error) {
	days := make([]Day, n)
	for i := range days {
		d := Day{Day: last.AddDate(0, 0, i+1-n).Format(time.DateOnly)}
		var err error
		if d.Usage, _, err = readSum(ctx, kv, keyOf(d.Day, Account{Kind: kindTotal})); err != nil {
			return nil, fmt.Errorf("read the usage on %s: %w", d.Day, err)
		}
		days[i] = d
	}
	return days, nil
}

// Limits returns the current limits, without raises.
func (l *Ledger) Limits(ctx context.Context) (Limits, error) { return l.cfg.Limits(ctx) }

// ListAccounts yields the accounts of a kind on a day, sorted by name, without their limits. If after is
// not empty, it begins behind that name.
func ListAccounts(ctx context.Context, kv storage.KV, day string, kind Kind, after string) iter.Seq2[AccountStatus, error] {
	return func(yield func(AccountStatus, error) bool) {
		r := storage.Range{Prefix: keyOf(day, Account{Kind: kind})}
		if after != "" {
			r.After = r.Prefix + after
		}
		for entry, err := range kv.List(ctx, r) {
			line := AccountStatus{Account: Account{Kind: kind, Name: strings.TrimPrefix(entry.Key, r.Prefix)}}
			if err == nil && json.Unmarshal(entry.Value, &line.Spent) != nil {
				continue // a damaged record does not hide others
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// UserUsage returns the usage of a user on the recorded days, by day.
func (l *Ledger) UserUsage(ctx context.Context, user string) (map[string]Usage, error) {
	if err := l.fold(ctx, chargesPrefix); err != nil {
		return nil, err
	}
	last := l.cfg.Now().In(l.cfg.Location())
	days := make(map[string]Usage)
	for n := range keepNamedDays {
		day := last.AddDate(0, 0, -n).Format(time.DateOnly)
		sum, found, err := readSum(ctx, l.cfg.Store, keyOf(day, Account{KindUser, user}))
		if err != nil {
			return nil, fmt.Errorf("read the usage of %s on %s: %w", user, day, err)
		}
		if found {
			days[day] = sum
		}
	}
	return days, nil
}
