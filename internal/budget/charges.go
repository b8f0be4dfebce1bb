package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oneclaw/storage"
)

// Unlimited usage is first written as charges: one record per write of a process, which no other
// process writes, so that processes do not contend. From time to time the charges are added to the
// accounts, in the write that deletes them. So each counts once. Charges left by a killed process
// are added by another process, or at the next start.

// chargesKey begins the keys of charges. The id of the process and the number of its write follow
// it.
const chargesKey = prefix + "charges/"

const (
	// addAfterRounds is the number of rounds of [lazyDelay] after which charges are added to the
	// accounts. maxSums is about how many sums they may have by then, as each sum is one account.
	addAfterRounds = 50
	maxSums        = 200
	// searchAfterRounds is the number of rounds with charges after which the ledger searches for
	// charges of other processes. Charges that it finds twice belong to a process that has ended, or
	// whose store does not answer.
	searchAfterRounds = 3000
)

// charges is the usage of some calls, by account. A record without sums was already added to the
// accounts, and is kept so that the process that wrote it can still check that.
type charges struct {
	Day  string   `json:"day"`
	Sums []charge `json:"sums,omitempty"`

	key string
	rev storage.Revision
}

type charge struct {
	Account Account `json:"account"`
	Sum     Usage   `json:"sum"`
}

func (c *charges) add(a Account, sum Usage) {
	for i := range c.Sums {
		if c.Sums[i].Account == a {
			c.Sums[i].Sum = c.Sums[i].Sum.plus(sum)
			return
		}
	}
	c.Sums = append(c.Sums, charge{a, sum})
}

// chargesFull reports whether the charges have to be added to the accounts before others are written.
func (l *Ledger) chargesFull() bool {
	sums := 0
	for _, c := range l.charges {
		sums += len(c.Sums)
	}
	return sums >= maxSums
}

// writeOp returns the operation that writes charges.
func (c *charges) writeOp() (storage.Op, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode charges: %w", err)
	}
	return storage.Put(c.key, data, c.rev), nil
}

func (l *Ledger) ownChargesKey(number int64) string {
	return fmt.Sprintf("%s%s/%d", chargesKey, l.self, number)
}

// addCharges adds the charges to the accounts of a book, and returns the operations that clear them.
func (l *Ledger) addCharges(ctx context.Context, b *accountBook) (ops []storage.Op, err error) {
	for _, c := range l.charges {
		b.charge(ctx, c)
		if l.cfg.Exclusive || strings.HasPrefix(c.key, chargesKey+l.self) {
			ops = append(ops, storage.Delete(c.key, c.rev))
			continue
		}
		op, err := (&charges{Day: c.Day, key: c.key, rev: c.rev}).writeOp()
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// refreshCharges reads the charges again, and keeps those that are still to be added.
func (l *Ledger) refreshCharges(ctx context.Context) error {
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

// readCharges reads the charges with the given key. They have no sums if there is no record.
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

// decodeCharges decodes charges, and moves an invalid record aside.
func (l *Ledger) decodeCharges(ctx context.Context, entry storage.Entry) (charges, error) {
	c := charges{key: entry.Key, rev: entry.Revision}
	if json.Unmarshal(entry.Value, &c) == nil {
		return c, nil
	}
	if err := l.cfg.OnDamaged(ctx, entry); err != nil {
		return charges{}, fmt.Errorf("move %s aside: %w", entry.Key, err)
	}
	err := l.cfg.Store.Delete(ctx, entry.Key, entry.Revision)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return charges{}, fmt.Errorf("remove %s: %w", entry.Key, err)
	}
	return charges{}, nil
}

// adoptCharges takes over the charges of processes that have ended. If other processes may use the
// store, it takes only charges that an earlier call has found and that have not changed since. It takes
// none twice: the list has charges again that could not be added yet.
func (l *Ledger) adoptCharges(ctx context.Context) error {
	found := map[string]storage.Revision{}
	var adopted []charges
	for entry, err := range l.cfg.Store.List(ctx, storage.Range{Prefix: chargesKey}) {
		if err != nil {
			return fmt.Errorf("list charges: %w", err)
		}
		if strings.HasPrefix(entry.Key, chargesKey+l.self) {
			continue
		}
		found[entry.Key] = entry.Revision
		known := slices.ContainsFunc(l.charges, func(c charges) bool { return c.key == entry.Key })
		if known || !l.cfg.Exclusive && l.foreignCharges[entry.Key] != entry.Revision {
			continue
		}
		c, err := l.decodeCharges(ctx, entry)
		if err != nil {
			return err
		}
		if len(c.Sums) > 0 {
			adopted = append(adopted, c)
		}
	}
	l.charges = append(l.charges, adopted...)
	l.foreignCharges, l.searched = found, true
	return nil
}
