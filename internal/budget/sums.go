package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/storage"
)

// Keys. The sum of an account is stored under its day or month and name, the total of a chat under the
// chat's name, a charge under the process that made it and a number.
const (
	prefix          = "account/"
	chatTotalPrefix = prefix + "ever/"
	chargesPrefix   = prefix + "charges/"
)

// Retention. Daily records of users and chats are kept for keepNamedDays, which cover this month and the
// previous one. Other records, and the totals of unused chats, are kept for keepDays.
const (
	keepDays      = 400
	keepNamedDays = 62
)

// keyOf returns the key of an account of a day, or of its month.
func keyOf(day string, a Account) string {
	if a.Kind == KindMonth {
		return prefix + day[:min(len(day), len("2006-01"))] + "/" + string(a.Kind)
	}
	return prefix + day + "/" + string(a.Kind) + "/" + a.Name
}

// charge is what a call cost, by account. One without sums was added to them by another process than the
// one that made it, which may still try to insert it.
type charge struct {
	Day  string    `json:"day"`
	Time time.Time `json:"time,omitzero"`
	Sums []share   `json:"sums,omitempty"`
}

// op returns the operation that inserts the charge of a call.
func (c *call) op() storage.Op {
	data, _ := json.Marshal(c.charge) // it fails only for a time beyond the year 9999
	return storage.Put(c.key, data, storage.Absent)
}

// record is the stored sum of an account, with its raises.
type record struct {
	Usage

	Raises []Raise `json:"raises,omitempty"`
	// LastDay is the day on which the total of a chat last grew.
	LastDay string `json:"last,omitempty"`

	rev storage.Revision
}

// raise returns a limit of the account with its raises.
func (r *record) raise(l Limit) Limit {
	for _, one := range r.Raises {
		if l.Tokens > 0 {
			l.Tokens += one.Amount.Tokens
		}
		if l.Money > 0 {
			l.Money += one.Amount.Money
		}
	}
	return l
}

// sums are records by their keys.
type sums map[string]*record

// keys returns the keys of the sums that a charge is added to.
func (c *charge) keys() (keys []string) {
	for _, s := range c.Sums {
		if keys = append(keys, keyOf(c.Day, s.Account)); s.Account.Kind == KindChat {
			keys = append(keys, chatTotalPrefix+s.Account.Name)
		}
	}
	return keys
}

// add adds a charge to those of its sums that are present.
func (s sums) add(c charge) {
	for _, one := range c.Sums {
		if r := s[keyOf(c.Day, one.Account)]; r != nil {
			r.Usage = r.plus(one.Sum)
		}
		if r := s[chatTotalPrefix+one.Account.Name]; r != nil && one.Account.Kind == KindChat {
			r.Usage, r.LastDay = r.plus(one.Sum), max(r.LastDay, c.Day)
		}
	}
}

// ops returns the operations that store the sums. Empty ones are deleted.
func (s sums) ops() (ops []storage.Op, err error) {
	for key, r := range s {
		data, err := json.Marshal(r)
		switch {
		case err != nil:
			return nil, fmt.Errorf("encode %s: %w", key, err)
		case r.Usage != Usage{} || r.Raises != nil:
			ops = append(ops, storage.Put(key, data, r.rev))
		case r.rev != storage.Absent:
			ops = append(ops, storage.Delete(key, r.rev))
		}
	}
	return ops, nil
}

// load reads sums. One that is not stored is empty, and one that does not decode begins anew.
func (l *Ledger) load(ctx context.Context, keys ...string) (sums, error) {
	stored, err := storage.GetMany(ctx, l.cfg.Store, keys)
	if err != nil {
		return nil, fmt.Errorf("budget: read the accounts: %w", err)
	}
	all := make(sums, len(keys))
	for _, key := range keys {
		entry := stored[key]
		r := &record{rev: entry.Revision}
		if entry.Revision != storage.Absent && json.Unmarshal(entry.Value, r) != nil {
			if r, err = l.mend(ctx, entry); err != nil {
				return nil, err
			}
		}
		all[key] = r
	}
	return all, nil
}

// mend keeps a copy of a record that does not decode, and replaces it by what others tell of it.
func (l *Ledger) mend(ctx context.Context, entry storage.Entry) (*record, error) {
	if err := l.cfg.OnDamaged(ctx, entry); err != nil {
		return nil, fmt.Errorf("budget: move %s aside: %w", entry.Key, err)
	}
	sum, err := recompute(ctx, l.cfg.Store, entry.Key, l.cfg.Now().In(l.cfg.Location()))
	if err != nil {
		return nil, err
	}
	r := &record{Usage: sum, LastDay: l.today()}
	r.rev, err = storage.Save(ctx, l.cfg.Store, entry.Key, r, entry.Revision)
	if errors.Is(err, storage.ErrConflict) { // another process was faster
		again, err := l.load(ctx, entry.Key)
		return again[entry.Key], err
	}
	if err != nil {
		return nil, fmt.Errorf("budget: replace %s: %w", entry.Key, err)
	}
	return r, nil
}

// current returns the accounts of a payer, and the chat's total, with the charges that are not added to
// them yet.
func (l *Ledger) current(ctx context.Context, day string, payer Payer) (sums, error) {
	keys := []string{chatTotalPrefix + payer.Chat}
	for _, k := range kinds() {
		keys = append(keys, keyOf(day, payer.account(k)))
	}
	month := keyOf(day, Account{Kind: KindMonth})
	for {
		before, err := l.load(ctx, month)
		if err != nil {
			return nil, err
		}
		waiting := l.unconfirmed()
		found, err := l.charges(ctx, chargesPrefix)
		if err != nil {
			return nil, err
		}
		all, err := l.load(ctx, keys...)
		if err != nil {
			return nil, err
		}
		if all[month].rev != before[month].rev {
			continue // charges were added to the sums meanwhile, and would count twice
		}
		for _, c := range found {
			waiting[c.key] = c.charge
		}
		for _, c := range waiting {
			all.add(c)
		}
		return all, nil
	}
}

// storedCharge is a charge with its key.
type storedCharge struct {
	charge
	key string
	rev storage.Revision
}

// charges returns the stored charges below a prefix. It removes those that do not decode.
func (l *Ledger) charges(ctx context.Context, below string) (all []storedCharge, err error) {
	for entry, err := range l.cfg.Store.List(ctx, storage.Range{Prefix: below}) {
		if err != nil {
			return nil, fmt.Errorf("budget: list the charges: %w", err)
		}
		c := storedCharge{key: entry.Key, rev: entry.Revision}
		if json.Unmarshal(entry.Value, &c.charge) == nil {
			all = append(all, c)
			continue
		}
		if err := l.cfg.OnDamaged(ctx, entry); err != nil {
			return nil, fmt.Errorf("budget: move %s aside: %w", entry.Key, err)
		}
		if err := l.cfg.Store.Delete(ctx, entry.Key, entry.Revision); err != nil && !errors.Is(err, storage.ErrConflict) { // another process has done it
			return nil, fmt.Errorf("budget: remove %s: %w", entry.Key, err)
		}
	}
	return all, nil
}

const (
	// maxFolded bounds the charges that one write adds to the sums.
	maxFolded = 200
	// foreignAge is the age from which a charge is added by any process, because its own may be dead. Each
	// process looks for such charges as often.
	// Then an empty one is in its place for emptyAge, in case that its own process inserts it again.
	foreignAge = time.Minute
	emptyAge   = 24 * time.Hour
)

// fold adds the stored charges below a prefix to the sums.
func (l *Ledger) fold(ctx context.Context, below string) error {
	for more := true; more; {
		err := storage.Retry(ctx, func() (err error) {
			more, err = l.foldSome(ctx, below)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// foldSome adds some charges to the sums, in the write that deletes them, and reports whether there are
// more.
func (l *Ledger) foldSome(ctx context.Context, below string) (more bool, err error) {
	found, err := l.charges(ctx, below)
	if err != nil {
		return false, err
	}
	unconfirmed, now := l.unconfirmed(), l.cfg.Now() // a charge that may be inserted again is not deleted
	var ops []storage.Op
	var folded []charge
	var keys []string
	for _, c := range found {
		if more = len(folded) == maxFolded; more {
			break
		}
		own, age := strings.HasPrefix(c.key, l.self), now.Sub(c.Time)
		if _, waits := unconfirmed[c.key]; waits || !own && age < foreignAge || !own && len(c.Sums) == 0 && age < emptyAge {
			continue
		}
		op := storage.Delete(c.key, c.rev)
		if !own && len(c.Sums) > 0 {
			op = storage.Put(c.key, (&call{charge: charge{Day: c.Day, Time: now}}).op().Value, c.rev)
		}
		ops, folded, keys = append(ops, op), append(folded, c.charge), append(keys, c.keys()...)
	}
	if len(ops) == 0 {
		return false, nil
	}
	slices.Sort(keys)
	all, err := l.load(ctx, slices.Compact(keys)...)
	if err != nil {
		return false, err
	}
	for _, c := range folded {
		all.add(c)
	}
	changes, err := all.ops()
	if err != nil {
		return false, err
	}
	if _, err = l.cfg.Store.Write(ctx, append(ops, changes...)...); err != nil {
		return false, fmt.Errorf("budget: add charges to the accounts: %w", err)
	}
	first := slices.IndexFunc(folded, func(c charge) bool { // of its day
		total := all[keyOf(c.Day, Account{Kind: kindTotal})]
		return total != nil && total.rev == storage.Absent
	})
	if first >= 0 {
		if err := l.prune(ctx, folded[first].Day); err != nil {
			l.log.Warn("old accounts cannot be deleted", "err", err)
		}
	}
	return more, nil
}
