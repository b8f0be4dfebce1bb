package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneclaw/storage"
)

// Where things lie in the store.
const (
	logPrefix  = "budget/"      // logs, by day
	dayPrefix  = "budget/day/"  // keys: what is kept of a day that is over
	currentKey = "budget/today" // key: the newest day that has a log
)

// labelState is the label of the records that hold a whole state.
const labelState = "state"

// stateEvery is after how many records the whole state is written again.
const stateEvery = 2000

// KeepDays is for how many days the accounts of a day are kept.
const KeepDays = 400

// maxNamed bounds the users and the chats that are kept of a day that is over: those
// that used most.
const maxNamed = 2000

// Day is what is kept of a day that is over.
type Day struct {
	Day    string         `json:"day"`
	All    Sum            `json:"all"`
	Users  map[string]Sum `json:"users,omitempty"`
	Chats  map[string]Sum `json:"chats,omitempty"`
	Raises []Raise        `json:"raises,omitempty"`
}

// Days returns the days that are over and kept, the oldest first.
func (l *Ledger) Days(ctx context.Context) ([]Day, error) {
	var days []Day
	for entry, err := range l.cfg.Store.List(ctx, storage.Range{Prefix: dayPrefix}) {
		if err != nil {
			return nil, fmt.Errorf("budget: list days: %w", err)
		}
		var d Day
		if err := json.Unmarshal(entry.Value, &d); err != nil {
			return nil, fmt.Errorf("budget: decode %s: %w", entry.Key, err)
		}
		days = append(days, d)
	}
	return days, nil
}

// today is the day of an instant.
func (l *Ledger) today(now time.Time) string { return now.In(l.cfg.Location()).Format(time.DateOnly) }

// current has the state of today at hand. A day does not begin twice: where the clock or
// the time zone goes back, the newer day goes on.
func (l *Ledger) current(ctx context.Context) error {
	today := l.today(l.cfg.Now())
	if l.state == nil {
		day, err := l.newest(ctx)
		if err != nil {
			return err
		}
		if err := l.read(ctx, day); err != nil {
			return err
		}
		if l.state.Day == "" {
			return l.begin(ctx, newState(today))
		}
	}
	if l.state.Day >= today {
		return nil
	}
	over := l.state
	if err := l.begin(ctx, over.next(today)); err != nil {
		return err
	}
	l.finish(ctx, over)
	return nil
}

// newest is the newest day that has a log; empty where there is none.
func (l *Ledger) newest(ctx context.Context) (string, error) {
	entry, err := l.cfg.Store.Get(ctx, currentKey)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("budget: read the day: %w", err)
	}
	return string(entry.Value), nil
}

// read makes the state of a day from its log. Where that has no whole state, because
// nothing was ever written, the state has no day.
func (l *Ledger) read(ctx context.Context, day string) error {
	s, last, since := newState(""), storage.Position(0), 0
	if day == "" {
		l.take(s, last, since)
		return nil
	}
	from := storage.Query{}
	for record, err := range l.cfg.Store.Records(ctx, logPrefix+day, storage.Query{Label: labelState, Backward: true, Limit: 1}) {
		if err != nil {
			return fmt.Errorf("budget: read %s: %w", day, err)
		}
		from.After = record.Pos - 1
	}
	for record, err := range l.cfg.Store.Records(ctx, logPrefix+day, from) {
		if err != nil {
			return fmt.Errorf("budget: read %s: %w", day, err)
		}
		var e event
		if err := json.Unmarshal(record.Data, &e); err != nil {
			return fmt.Errorf("budget: decode record %d of %s: %w", record.Pos, day, err)
		}
		s.apply(e)
		last = record.Pos
		since++
	}
	l.take(s, last, since)
	return nil
}

// take has a state as the present one.
func (l *Ledger) take(s *state, last storage.Position, since int) {
	if l.cfg.Exclusive {
		s.Open = l.open // what a log has of others is of a process that is no more
	}
	l.state, l.last, l.since = s, last, since
}

// begin starts the log of a day. Where another process has done it, its state counts.
func (l *Ledger) begin(ctx context.Context, s *state) error {
	record, err := encode(event{Kind: eventState, State: s, Time: l.cfg.Now()})
	if err != nil {
		return err
	}
	l.state = nil
	last, err := l.cfg.Store.Append(ctx, logPrefix+s.Day, 0, record)
	switch {
	case errors.Is(err, storage.ErrConflict):
		if err := l.read(ctx, s.Day); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("budget: begin %s: %w", s.Day, err)
	default:
		l.take(s, last, 1)
	}
	if _, err := l.cfg.Store.Put(ctx, currentKey, []byte(s.Day), storage.Any); err != nil {
		l.state = nil
		return fmt.Errorf("budget: begin %s: %w", s.Day, err)
	}
	return nil
}

// finish keeps what is worth keeping of a day that is over, and forgets its log and
// what is too old. What fails here is left for the next day.
func (l *Ledger) finish(ctx context.Context, over *state) {
	data, err := json.Marshal(Day{Day: over.Day, All: over.All, Users: largest(over.Users), Chats: largest(over.Chats), Raises: over.Raises})
	if err == nil {
		_, err = l.cfg.Store.Put(ctx, dayPrefix+over.Day, data, storage.Any)
	}
	if err == nil {
		err = l.cfg.Store.Drop(ctx, logPrefix+over.Day)
	}
	oldest := l.cfg.Now().AddDate(0, 0, -KeepDays).Format(time.DateOnly)
	for entry, failure := range l.cfg.Store.List(ctx, storage.Range{Prefix: dayPrefix}) {
		if err = errors.Join(err, failure); failure != nil || entry.Key >= dayPrefix+oldest {
			break
		}
		err = errors.Join(err, l.cfg.Store.Delete(ctx, entry.Key, storage.Any))
	}
	if err != nil {
		l.log.Warn("accounts of a day that is over could not be put away", "day", over.Day, "err", err)
	}
}

// largest keeps those that used most.
func largest(sums map[string]Sum) map[string]Sum {
	if len(sums) <= maxNamed {
		return sums
	}
	names := make([]string, 0, len(sums))
	for name := range sums {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return int(sums[b].Tokens() - sums[a].Tokens()) })
	kept := make(map[string]Sum, maxNamed)
	for _, name := range names[:maxNamed] {
		kept[name] = sums[name]
	}
	return kept
}

// append writes events, which the state has in it already, and the whole state where it
// is time for that.
func (l *Ledger) append(ctx context.Context, events []event) error {
	if len(events) == 0 {
		return nil
	}
	whole := l.since+len(events) >= stateEvery
	if whole {
		events = append(events, event{Kind: eventState, State: l.state, Time: l.cfg.Now()})
	}
	records := make([]storage.Record, 0, len(events))
	for _, e := range events {
		record, err := encode(e)
		if err != nil {
			return err
		}
		records = append(records, record)
	}
	last, err := l.cfg.Store.Append(ctx, logPrefix+l.state.Day, l.last, records...)
	if err != nil {
		return fmt.Errorf("budget: write %s: %w", l.state.Day, err)
	}
	l.last, l.since = last, l.since+len(events)
	if whole {
		l.since = 1
	}
	return nil
}

func encode(e event) (storage.Record, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return storage.Record{}, fmt.Errorf("budget: encode: %w", err)
	}
	record := storage.Record{Data: data}
	if e.Kind == eventState {
		record.Label = labelState
	}
	return record, nil
}
