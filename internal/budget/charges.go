package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"oneclaw/storage"
)

// What calls used that nothing bounds is first written as charges: a record for each write of a
// process, which no other writes, so that processes do not wait for each other. Once in a while
// they are added to the accounts, in the write that removes them. So each counts once, and what a
// process that was killed had not added is added by another, or when the program starts again.

// chargesKey begins the keys of charges: the id of the process and the number of its write follow.
const chargesKey = prefix + "charges/"

const (
	// addAfter is after how many rounds of [lazyTime] charges are added to the accounts, maxSums about
	// how many sums they have at most until then: one write names as many accounts.
	addAfter = 50
	maxSums  = 200
	// lookAfter is after how many rounds with charges those of other processes are looked for. What
	// lies there each time is of one that is no more, or that the store does not answer.
	lookAfter = 3000
)

// charges is what some calls used, by account. Where it has no sums it was added to the accounts
// already: the process that wrote it may still ask whether it did.
type charges struct {
	Day  string   `json:"day"`
	Sums []charge `json:"sums,omitempty"`

	key string
	rev storage.Revision
}

type charge struct {
	Account Account `json:"account"`
	Sum     Sum     `json:"sum"`
}

func (c *charges) add(a Account, sum Sum) {
	for i := range c.Sums {
		if c.Sums[i].Account == a {
			c.Sums[i].Sum = c.Sums[i].Sum.plus(sum)
			return
		}
	}
	c.Sums = append(c.Sums, charge{a, sum})
}

// crowded reports whether charges have to be added before others are written.
func (l *Ledger) crowded() bool {
	sums := 0
	for _, c := range l.charges {
		sums += len(c.Sums)
	}
	return sums >= maxSums
}

// put is the operation that writes charges.
func (c *charges) put() (storage.Op, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode charges: %w", err)
	}
	return storage.Put(c.key, data, c.rev), nil
}

func (l *Ledger) chargesOf(number int64) string {
	return fmt.Sprintf("%s%s/%d", chargesKey, l.self, number)
}

// addUp adds the charges to the accounts of a book, and returns what has them count no more.
func (l *Ledger) addUp(ctx context.Context, b *book) (ops []storage.Op, err error) {
	for _, c := range l.charges {
		b.charge(ctx, c)
		if l.cfg.Exclusive || strings.HasPrefix(c.key, chargesKey+l.self) {
			ops = append(ops, storage.Delete(c.key, c.rev))
			continue
		}
		op, err := (&charges{Day: c.Day, key: c.key, rev: c.rev}).put()
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// recall reads again which charges are still to be added.
func (l *Ledger) recall(ctx context.Context) error {
	var left []charges
	for _, c := range l.charges {
		again, err := l.readCharges(ctx, c.key)
		if err != nil {
			return err
		}
		if len(again.Sums) > 0 {
			left = append(left, again)
		}
	}
	l.charges = left
	return nil
}

// readCharges reads charges; without sums where there are none.
func (l *Ledger) readCharges(ctx context.Context, key string) (charges, error) {
	entry, err := l.cfg.Store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return charges{}, nil
	}
	if err != nil {
		return charges{}, fmt.Errorf("read charges: %w", err)
	}
	return l.decodeCharges(ctx, entry)
}

// decodeCharges sets a record aside that does not decode.
func (l *Ledger) decodeCharges(ctx context.Context, entry storage.Entry) (charges, error) {
	c := charges{key: entry.Key, rev: entry.Revision}
	if json.Unmarshal(entry.Value, &c) == nil {
		return c, nil
	}
	if err := l.cfg.Damaged(ctx, entry); err != nil {
		return charges{}, fmt.Errorf("set %s aside: %w", entry.Key, err)
	}
	err := l.cfg.Store.Delete(ctx, entry.Key, entry.Revision)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return charges{}, fmt.Errorf("remove %s: %w", entry.Key, err)
	}
	return charges{}, nil
}

// adopt takes over the charges of processes that are no more: where others may use the store, those
// that lay there when it looked before.
func (l *Ledger) adopt(ctx context.Context) error {
	found := map[string]storage.Revision{}
	for entry, err := range l.cfg.Store.List(ctx, storage.Range{Prefix: chargesKey}) {
		if err != nil {
			return fmt.Errorf("list charges: %w", err)
		}
		if strings.HasPrefix(entry.Key, chargesKey+l.self) {
			continue
		}
		found[entry.Key] = entry.Revision
		if !l.cfg.Exclusive && l.foreign[entry.Key] != entry.Revision {
			continue
		}
		c, err := l.decodeCharges(ctx, entry)
		if err != nil {
			return err
		}
		if len(c.Sums) > 0 {
			l.charges = append(l.charges, c)
		}
	}
	l.foreign, l.looked = found, true
	return nil
}
