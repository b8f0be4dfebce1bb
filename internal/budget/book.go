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

// Keys. An account of a day or month is stored under its period and name, the total of a chat under
// the chat's name.
const (
	prefix          = "account/"
	chatTotalPrefix = prefix + "ever/"
	reservationsKey = prefix + "held"   // the reservations
	dayKey          = prefix + "newest" // the newest day
)

// Retention. Daily records of users and chats are kept for keepNamedDays, which cover this month and the
// previous one. Other records, and the totals of unused chats, are kept for KeepDays.
const (
	KeepDays      = 400
	keepNamedDays = 62
)

// record is a stored record: the sum of an account with its raises, or the reservations.
type record struct {
	Usage
	Raises []Raise `json:"raises,omitempty"`
	// LastDay is the day on which a total last grew.
	LastDay string `json:"last,omitempty"`
	// Reservations are the reservations by id.
	Reservations map[string]reservation `json:"held,omitempty"`
	// LastWrites has the last write of each process that changed this record. It is stored with the
	// total of a day, which every charge changes.
	LastWrites map[string]lastWrite `json:"marks,omitempty"`

	rev     storage.Revision
	changed bool
}

// lastWrite identifies the last write of a process.
type lastWrite struct {
	Number int64     `json:"number"`
	At     time.Time `json:"at"`
}

// maxLastWrites bounds LastWrites, and so the number of processes that write at the same time.
const maxLastWrites = 128

type reservation struct {
	User    string    `json:"user"`
	Chat    string    `json:"chat"`
	Limit             // the reserved amount
	Expires time.Time `json:"expires"`
}

// accountBook caches the accounts between batches and holds the changes of the current one. Each record
// is read on first use.
type accountBook struct {
	store        storage.Store
	day          string
	dayRev       storage.Revision // revision of the day's record
	ownPrefix    string           // prefix of the ids of reservations that count; empty for all
	maxRemaining time.Duration    // the longest remaining time of a reservation
	onDamaged    func(context.Context, storage.Entry) error
	records      map[string]*record
	used         map[string]bool // by the current batch; true if an earlier batch had read the record
	err          error           // errors of reads, after which no decision is possible
}

// maxRecords bounds the records cached between batches.
const maxRecords = 10_000

func (b *accountBook) recordAt(ctx context.Context, key string) *record {
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

// readDay reads the current day and its revision. If the record is invalid, it keeps a copy and returns
// no day.
func (b *accountBook) readDay(ctx context.Context) (day string, begun storage.Revision, err error) {
	entry, err := b.store.Get(ctx, dayKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", storage.Absent, fmt.Errorf("read the day: %w", err)
	}
	day, begun = string(entry.Value), entry.Revision
	if _, err := time.Parse(time.DateOnly, day); err == nil || begun == storage.Absent {
		return day, begun, nil
	}
	if err := b.onDamaged(ctx, entry); err != nil {
		return "", storage.Absent, fmt.Errorf("move %s aside: %w", dayKey, err)
	}
	return "", begun, nil
}

// readsAtOnce bounds the parallel reads.
const readsAtOnce = 16

// reread reads the day and some records again, and reports whether another process has changed
// any of them.
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
	changed := b.dayRev != begun
	b.day, b.dayRev = day, begun
	for i, key := range keys {
		known := b.records[key]
		changed = changed || known == nil || known.rev != fresh[i].rev
		b.records[key] = fresh[i]
	}
	return changed, nil
}

// sharedKeys returns the keys of the records that every process writes.
func (b *accountBook) sharedKeys() []string {
	return []string{reservationsKey, keyOf(b.day, Account{Kind: KindTotal}), keyOf(b.day, Account{Kind: KindMonth})}
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
	return b.recordAt(ctx, keyOf(b.day, a))
}

// limit returns the current limit of an account, with its raises.
func (b *accountBook) limit(ctx context.Context, limits Limits, a Account) Limit {
	return b.addRaises(ctx, limits.forKind(a.Kind), a)
}

// addRaises returns a limit of an account with its raises.
func (b *accountBook) addRaises(ctx context.Context, l Limit, a Account) Limit {
	for _, r := range b.account(ctx, a).Raises {
		if l.Tokens > 0 {
			l.Tokens += r.Amount.Tokens
		}
		if l.Money > 0 {
			l.Money += r.Amount.Money
		}
	}
	return l
}

func (b *accountBook) reservedAmount(ctx context.Context, a Account, now time.Time) Limit {
	var sum Limit
	for id, h := range b.recordAt(ctx, reservationsKey).Reservations {
		theirs := Payer{User: h.User, Chat: h.Chat}.account(a.Kind)
		if theirs == a && b.isActive(h, now) && strings.HasPrefix(id, b.ownPrefix) {
			sum.Tokens += h.Tokens
			sum.Money += h.Money
		}
	}
	return sum
}

// admit returns a refusal if one of the payer's accounts has reached its limit, and nil otherwise.
func (b *accountBook) admit(ctx context.Context, limits Limits, payer Payer, now time.Time) *Refusal {
	for _, k := range kinds() {
		a := payer.account(k)
		limit := b.limit(ctx, limits, a)
		if limit == (Limit{}) {
			continue
		}
		spent, held := b.account(ctx, a).Usage, b.reservedAmount(ctx, a, now)
		tokens := limit.Tokens > 0 && spent.Tokens()+held.Tokens >= limit.Tokens
		money := limit.Money > 0 && spent.Money+held.Money >= limit.Money
		if tokens || money {
			return &Refusal{
				Account: a, Spent: spent, Limit: limit, Base: limits.forKind(k), IsMoney: money,
				PartlyReserved: money && spent.Money < limit.Money || !money && spent.Tokens() < limit.Tokens,
			}
		}
	}
	return nil
}

// isActive reports whether a reservation counts. One that expires later than a new one would was
// made by a clock that was ahead.
func (b *accountBook) isActive(h reservation, now time.Time) bool {
	return now.Before(h.Expires) && h.Expires.Before(now.Add(b.maxRemaining))
}

// reserve reserves the possible cost of a call, and drops expired reservations.
func (b *accountBook) reserve(ctx context.Context, id string, h reservation, now time.Time) {
	r := b.recordAt(ctx, reservationsKey)
	maps.DeleteFunc(r.Reservations, func(_ string, old reservation) bool { return !b.isActive(old, now) })
	if r.Reservations == nil {
		r.Reservations = map[string]reservation{}
	}
	r.Reservations[id], r.changed = h, true
}

// release ends a reservation, and reports whether it existed.
func (b *accountBook) release(ctx context.Context, id string) bool {
	r := b.recordAt(ctx, reservationsKey)
	_, open := r.Reservations[id]
	delete(r.Reservations, id)
	r.changed = r.changed || open
	return open
}

// charge adds charges to the accounts of their day.
func (b *accountBook) charge(ctx context.Context, c charges) {
	for _, one := range c.Sums {
		b.add(b.recordAt(ctx, keyOf(c.Day, one.Account)), one.Sum)
		if one.Account.Kind == KindChat {
			ever := b.recordAt(ctx, chatTotalPrefix+one.Account.Name)
			b.add(ever, one.Sum)
			ever.LastDay = max(ever.LastDay, c.Day)
		}
	}
}

func (b *accountBook) add(r *record, sum Usage) { r.Usage, r.changed = r.plus(sum), true }

// total returns the account of all users on a day.
func (b *accountBook) total(ctx context.Context, day string) *record {
	return b.recordAt(ctx, keyOf(day, Account{Kind: KindTotal}))
}

// markWrite records this process's write in the day's total, if the write charges anything. Beyond
// maxLastWrites it drops the entries of the processes that have gone longest without a write.
func (b *accountBook) markWrite(process string, number int64, now time.Time) {
	r := b.records[keyOf(b.day, Account{Kind: KindTotal})]
	if r == nil || !r.changed {
		return
	}
	if r.LastWrites == nil || b.ownPrefix != "" {
		r.LastWrites = map[string]lastWrite{}
	}
	r.LastWrites[process] = lastWrite{number, now}
	for len(r.LastWrites) > maxLastWrites {
		delete(r.LastWrites, slices.MinFunc(slices.Collect(maps.Keys(r.LastWrites)), func(a, b string) int { return r.LastWrites[a].At.Compare(r.LastWrites[b].At) }))
	}
}

func (b *accountBook) changes() ([]storage.Op, error) {
	var ops []storage.Op
	for _, key := range slices.Sorted(maps.Keys(b.records)) {
		r := b.records[key]
		if !r.changed {
			continue
		}
		if r.isEmpty() {
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
// depends on, or has begun another day.
func (b *accountBook) checks() []storage.Op {
	ops := []storage.Op{storage.Check(dayKey, b.dayRev)}
	for key := range b.used {
		if r := b.records[key]; !r.changed {
			ops = append(ops, storage.Check(key, r.rev))
		}
	}
	return ops
}

// isEmpty reports whether a record has no content, as after a chat has moved. A total whose only call was
// refunded still has the marks of writes.
func (r *record) isEmpty() bool {
	return r.Usage == Usage{} && r.Raises == nil && len(r.Reservations) == 0 && r.LastWrites == nil
}

func (b *accountBook) markStored(rev storage.Revision) {
	for key, r := range b.records {
		switch {
		case r.changed && r.isEmpty():
			delete(b.records, key)
		case r.changed:
			r.rev, r.changed = rev, false
		}
	}
}

// move moves the accounts of a chat and its threads to another chat. It may be repeated.
func (b *accountBook) move(ctx context.Context, from, to string) {
	for _, beginning := range []string{keyOf(b.day, Account{Kind: KindChat}), chatTotalPrefix} {
		for entry, err := range b.store.List(ctx, storage.Range{Prefix: beginning + from}) {
			thread := strings.TrimPrefix(entry.Key, beginning+from)
			switch {
			case err != nil:
				b.err = errors.Join(b.err, fmt.Errorf("list the accounts of %s: %w", from, err))
				return
			case thread != "" && thread[0] != ':':
				continue
			}
			old, next := b.recordAt(ctx, entry.Key), b.recordAt(ctx, beginning+to+thread)
			for _, r := range old.Raises {
				r.Account.Name = to + thread
				next.Raises = append(next.Raises, r)
			}
			b.add(next, old.Usage)
			next.LastDay = max(next.LastDay, old.LastDay)
			*old = record{rev: old.rev, changed: true}
		}
	}
	held := b.recordAt(ctx, reservationsKey)
	for id, h := range held.Reservations {
		if thread, ok := strings.CutPrefix(h.Chat, from); ok && (thread == "" || thread[0] == ':') {
			h.Chat, held.changed = to+thread, true
			held.Reservations[id] = h
		}
	}
}
