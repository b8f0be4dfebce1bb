package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
)

// Keys: an account of a day or month is under its period and name, the total of a chat under its
// name.
const (
	prefix    = "account/"
	everKey   = prefix + "ever/"
	heldKey   = prefix + "held"   // the reservations
	newestKey = prefix + "newest" // the newest day
)

// Retention: records of users and chats for this month and the previous one, those of all for
// more than a year, and totals of unused chats likewise.
const (
	KeepDays      = 400
	keepNamedDays = 62
)

// record is a stored record: the sum of an account with its raises, or the reservations.
type record struct {
	Sum
	Raises []Raise `json:"raises,omitempty"`
	// Last is the day on which a total last grew.
	Last string `json:"last,omitempty"`
	// Held are the reservations by id.
	Held map[string]hold `json:"held,omitempty"`
	// Marks has, for each process, the number of its last write that changed this record. They are
	// stored with the total of a day, which every charge changes.
	Marks map[string]mark `json:"marks,omitempty"`

	rev     storage.Revision
	changed bool
}

// mark identifies the last write of a process: its number and time.
type mark struct {
	Number int64     `json:"number"`
	At     time.Time `json:"at"`
}

// maxMarks bounds the marks in a record, and so the processes that write at the same time.
const maxMarks = 128

type hold struct {
	User    string    `json:"user"`
	Chat    string    `json:"chat"`
	Limit             // the reserved amount
	Expires time.Time `json:"expires"`
}

// accountBook is a batch's view of the accounts. Each is read on first use.
type accountBook struct {
	store   storage.Store
	day     string
	begun   storage.Revision // of the day's record
	own     string           // prefix of the ids of reservations that count; empty for all
	longest time.Duration    // the longest remaining time of a reservation
	damaged func(context.Context, storage.Entry) error
	records map[string]*record
	used    map[string]bool // by the current batch; true if it was read before
	err     error           // of the first failed read: then nothing may be decided
}

// maxRecords bounds the records cached between batches.
const maxRecords = 10_000

func (b *accountBook) at(ctx context.Context, key string) *record {
	if r := b.records[key]; r != nil {
		if _, again := b.used[key]; !again {
			b.used[key] = true
		}
		return r
	}
	r, err := b.read(ctx, key)
	if err != nil {
		b.err = errors.Join(b.err, err)
		return &record{}
	}
	b.records[key], b.used[key] = r, false
	return r
}

func (b *accountBook) read(ctx context.Context, key string) (*record, error) {
	r := &record{}
	entry, err := b.store.Get(ctx, key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return r, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	r.rev = entry.Revision
	if json.Unmarshal(entry.Value, r) != nil {
		return b.mend(ctx, entry)
	}
	return r, nil
}

// readDay reads the current day and its revision. An invalid record is moved aside and replaced.
func (b *accountBook) readDay(ctx context.Context) (day string, begun storage.Revision, err error) {
	entry, err := b.store.Get(ctx, newestKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", storage.Absent, fmt.Errorf("read the day: %w", err)
	}
	day, begun = string(entry.Value), entry.Revision
	if _, err := time.Parse(time.DateOnly, day); err == nil || begun == storage.Absent {
		return day, begun, nil
	}
	if err := b.damaged(ctx, entry); err != nil {
		return "", storage.Absent, fmt.Errorf("set %s aside: %w", newestKey, err)
	}
	return "", begun, nil
}

// readsAtOnce bounds the parallel reads.
const readsAtOnce = 16

// reread reads the day and some records again, and reports whether another process has changed
// one.
func (b *accountBook) reread(ctx context.Context, keys []string) (bool, error) {
	var group errgroup.Group
	group.SetLimit(readsAtOnce)
	var day string
	var begun storage.Revision
	group.Go(func() (err error) {
		day, begun, err = b.readDay(ctx)
		return err
	})
	fresh := make([]*record, len(keys))
	for i, key := range keys {
		group.Go(func() (err error) {
			fresh[i], err = b.read(ctx, key)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	changed := b.begun != begun
	b.day, b.begun = day, begun
	for i, key := range keys {
		known := b.records[key]
		changed = changed || known == nil || known.rev != fresh[i].rev
		b.records[key] = fresh[i]
	}
	return changed, nil
}

// common returns the keys of the records that every process writes.
func (b *accountBook) common() []string {
	return []string{heldKey, keyOf(b.day, Account{Kind: KindTotal}), keyOf(b.day, Account{Kind: KindMonth})}
}

// keyOf returns the key of an account of a day, or of its month.
func keyOf(day string, a Account) string {
	if a.Kind == KindMonth {
		return prefix + month(day) + "/" + string(a.Kind)
	}
	return prefix + day + "/" + string(a.Kind) + "/" + a.Name
}

func month(day string) string { return day[:min(len(day), len("2006-01"))] }

func (b *accountBook) account(ctx context.Context, a Account) *record {
	return b.at(ctx, keyOf(b.day, a))
}

// limit returns the current limit of an account, with its raises.
func (b *accountBook) limit(ctx context.Context, limits Limits, a Account) Limit {
	l := limits.of(a.Kind)
	for _, r := range b.account(ctx, a).Raises {
		if l.Tokens > 0 {
			l.Tokens += r.By.Tokens
		}
		if l.Money > 0 {
			l.Money += r.By.Money
		}
	}
	return l
}

func (b *accountBook) held(ctx context.Context, a Account, now time.Time) Limit {
	var sum Limit
	for id, h := range b.at(ctx, heldKey).Held {
		theirs := Payer{User: h.User, Chat: h.Chat}.account(a.Kind)
		if theirs == a && b.holds(h, now) && strings.HasPrefix(id, b.own) {
			sum.Tokens += h.Tokens
			sum.Money += h.Money
		}
	}
	return sum
}

// admit refuses a call if one of the payer's accounts has reached its limit.
func (b *accountBook) admit(ctx context.Context, limits Limits, payer Payer, now time.Time) *Refusal {
	for _, k := range kinds() {
		a := payer.account(k)
		limit := b.limit(ctx, limits, a)
		if limit == (Limit{}) {
			continue
		}
		spent, held := b.account(ctx, a).Sum, b.held(ctx, a, now)
		tokens := limit.Tokens > 0 && spent.Tokens()+held.Tokens >= limit.Tokens
		money := limit.Money > 0 && spent.Money+held.Money >= limit.Money
		if tokens || money {
			return &Refusal{
				Account: a, Spent: spent, Limit: limit, Base: limits.of(k), Money: money,
				Held: money && spent.Money < limit.Money || !money && spent.Tokens() < limit.Tokens,
			}
		}
	}
	return nil
}

// holds reports whether a reservation is valid. One that ends later than any new one comes from
// a clock that was ahead.
func (b *accountBook) holds(h hold, now time.Time) bool {
	return now.Before(h.Expires) && h.Expires.Before(now.Add(b.longest))
}

// reserve reserves the possible cost of a call, and drops expired reservations.
func (b *accountBook) reserve(ctx context.Context, id string, h hold, now time.Time) {
	r := b.at(ctx, heldKey)
	maps.DeleteFunc(r.Held, func(_ string, old hold) bool { return !b.holds(old, now) })
	if r.Held == nil {
		r.Held = map[string]hold{}
	}
	r.Held[id], r.changed = h, true
}

// release ends a reservation, and reports whether it existed.
func (b *accountBook) release(ctx context.Context, id string) bool {
	r := b.at(ctx, heldKey)
	_, open := r.Held[id]
	delete(r.Held, id)
	r.changed = r.changed || open
	return open
}

// charge adds charges to the accounts of their day.
func (b *accountBook) charge(ctx context.Context, c charges) {
	for _, one := range c.Sums {
		b.add(b.at(ctx, keyOf(c.Day, one.Account)), one.Sum)
		if one.Account.Kind == KindChat {
			ever := b.at(ctx, everKey+one.Account.Name)
			b.add(ever, one.Sum)
			ever.Last = max(ever.Last, c.Day)
		}
	}
}

func (b *accountBook) add(r *record, sum Sum) { r.Sum, r.changed = r.plus(sum), true }

// total returns the account of all on a day.
func (b *accountBook) total(ctx context.Context, day string) *record {
	return b.at(ctx, keyOf(day, Account{Kind: KindTotal}))
}

// sign records a write of a process if the write charges anything. It drops the marks of the
// processes that have not written for the longest time.
func (b *accountBook) sign(process string, number int64, now time.Time) {
	r := b.records[keyOf(b.day, Account{Kind: KindTotal})]
	if r == nil || !r.changed {
		return
	}
	if r.Marks == nil || b.own != "" {
		r.Marks = map[string]mark{}
	}
	r.Marks[process] = mark{number, now}
	for len(r.Marks) > maxMarks {
		delete(r.Marks, slices.MinFunc(slices.Collect(maps.Keys(r.Marks)), func(a, b string) int { return r.Marks[a].At.Compare(r.Marks[b].At) }))
	}
}

func (b *accountBook) changes() ([]storage.Op, error) {
	var ops []storage.Op
	for _, key := range slices.Sorted(maps.Keys(b.records)) {
		r := b.records[key]
		if !r.changed {
			continue
		}
		if r.empty() {
			ops = append(ops, storage.Delete(key, r.rev))
			continue
		}
		data, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", key, err)
		}
		ops = append(ops, storage.Put(key, data, r.rev))
	}
	return slices.DeleteFunc(ops, func(op storage.Op) bool { return op.Kind == storage.KindDelete && op.Rev == storage.Absent }), nil
}

// checks returns operations that fail if another process has changed a record that the batch
// depends on, or has begun another day, which is common to all.
func (b *accountBook) checks() []storage.Op {
	ops := []storage.Op{storage.Check(newestKey, b.begun)}
	for key := range b.used {
		if r := b.records[key]; !r.changed {
			ops = append(ops, storage.Check(key, r.rev))
		}
	}
	return ops
}

// empty reports whether a record has no content, as after a chat has moved.
func (r *record) empty() bool {
	return r.Sum == Sum{} && r.Raises == nil && len(r.Held) == 0
}

func (b *accountBook) written(rev storage.Revision) {
	for key, r := range b.records {
		switch {
		case r.changed && r.empty():
			delete(b.records, key)
		case r.changed:
			r.rev, r.changed = rev, false
		}
	}
}

// move moves the accounts of a chat and its threads to another one. It can be repeated.
func (b *accountBook) move(ctx context.Context, from, to string) {
	for _, beginning := range []string{keyOf(b.day, Account{Kind: KindChat}), everKey} {
		for entry, err := range b.store.List(ctx, storage.Range{Prefix: beginning + from}) {
			thread := strings.TrimPrefix(entry.Key, beginning+from)
			switch {
			case err != nil:
				b.err = errors.Join(b.err, fmt.Errorf("list the accounts of %s: %w", from, err))
				return
			case thread != "" && thread[0] != ':':
				continue
			}
			old, next := b.at(ctx, entry.Key), b.at(ctx, beginning+to+thread)
			for _, r := range old.Raises {
				r.Account.Name = to + thread
				next.Raises = append(next.Raises, r)
			}
			b.add(next, old.Sum)
			next.Last = max(next.Last, old.Last)
			*old = record{rev: old.rev, changed: true}
		}
	}
	held := b.at(ctx, heldKey)
	for id, h := range held.Held {
		if thread, ok := strings.CutPrefix(h.Chat, from); ok && (thread == "" || thread[0] == ':') {
			h.Chat, held.changed = to+thread, true
			held.Held[id] = h
		}
	}
}
