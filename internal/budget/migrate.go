package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"oneclaw/storage"
)

// formerDay is a whole state of a day in the journal of format 1.
type formerDay struct {
	Day    string            `json:"day"`
	All    Sum               `json:"all"`
	Month  Sum               `json:"month"`
	Users  map[string]Sum    `json:"users"`
	Chats  map[string]Sum    `json:"chats"`
	Totals map[string]record `json:"totals"`
	Raises []Raise           `json:"raises"`
}

type formerEvent struct {
	Payer *Payer     `json:"payer"`
	Sum   *Sum       `json:"sum"`
	Raise *Raise     `json:"raise"`
	State *formerDay `json:"state"`
}

// Migrate turns the journal of format 1 into the records of format 2. Reservations are
// not taken along: the program that made them has ended. It may be called again, and writes
// with Any: nobody else has the store while its format changes.
func Migrate(ctx context.Context, store storage.Store) error {
	const logs, days, today = "budget/", "budget/day/", "budget/today"
	newest, err := store.Get(ctx, today)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("budget: read the newest day: %w", err)
	}
	if day := string(newest.Value); day != "" {
		state, events, err := formerState(ctx, store, logs+day)
		if err == nil {
			err = state.keep(ctx, store, day, events)
		}
		if err == nil {
			_, err = store.Put(ctx, newestKey, newest.Value, storage.Any)
		}
		if err != nil {
			return fmt.Errorf("budget: take over %s: %w", day, err)
		}
	}
	for entry, err := range store.List(ctx, storage.Range{Prefix: days}) {
		var over formerDay
		if err == nil {
			err = json.Unmarshal(entry.Value, &over)
		}
		if err == nil {
			err = over.keep(ctx, store, over.Day, nil)
		}
		if err == nil {
			err = store.Delete(ctx, entry.Key, entry.Revision)
		}
		if err != nil {
			return fmt.Errorf("budget: take over %s: %w", entry.Key, err)
		}
	}
	if len(newest.Value) == 0 {
		return nil
	}
	// The key last: it is what finds the log again after a crash.
	return errors.Join(store.Drop(ctx, logs+string(newest.Value)), store.Delete(ctx, today, storage.Any))
}

// formerState reads the newest whole state of a log and the events behind it.
func formerState(ctx context.Context, store storage.Log, log string) (formerDay, []formerEvent, error) {
	var state formerDay
	var events []formerEvent
	for r, err := range store.Records(ctx, log, storage.Query{}) {
		var e formerEvent
		if err == nil {
			err = json.Unmarshal(r.Data, &e)
		}
		if err != nil {
			return state, nil, err
		}
		if e.State != nil {
			state, events = *e.State, nil
			continue
		}
		events = append(events, e)
	}
	return state, events, nil
}

// keep writes a day as records, in place of what an earlier try has written.
func (d formerDay) keep(ctx context.Context, store storage.Store, day string, events []formerEvent) error {
	b := &book{store: nothing{}, day: day, records: d.records(day), used: map[string]bool{}}
	for _, e := range events {
		if e.Sum != nil && e.Payer != nil {
			b.charge(ctx, *e.Payer, *e.Sum)
		}
		if e.Raise != nil {
			account := b.account(ctx, e.Raise.Account)
			account.Raises = append(account.Raises, *e.Raise)
		}
	}
	var ops []storage.Op
	for key, r := range b.records {
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		ops = append(ops, storage.Put(key, data, storage.Any))
	}
	for part := range slices.Chunk(ops, 1000) {
		if _, err := store.Write(ctx, part...); err != nil {
			return err
		}
	}
	return nil
}

// records are those of a day without the events behind it.
func (d formerDay) records(day string) map[string]*record {
	all := map[string]*record{keyOf(day, Account{Kind: KindTotal}): {Sum: d.All}}
	if d.Month != (Sum{}) {
		all[keyOf(day, Account{Kind: KindMonth})] = &record{Sum: d.Month}
	}
	for user, sum := range d.Users {
		all[keyOf(day, Account{KindUser, user})] = &record{Sum: sum}
	}
	for chat, sum := range d.Chats {
		all[keyOf(day, Account{KindChat, chat})] = &record{Sum: sum}
	}
	for chat, total := range d.Totals {
		all[everKey+chat] = &total
	}
	for _, r := range d.Raises {
		key := keyOf(day, r.Account)
		if all[key] == nil {
			all[key] = &record{}
		}
		all[key].Raises = append(all[key].Raises, r)
	}
	return all
}

// nothing is a store in which there is nothing to read.
type nothing struct{ storage.Store }

// Get finds nothing.
func (nothing) Get(context.Context, string) (storage.Entry, error) {
	return storage.Entry{}, storage.ErrNotFound
}
