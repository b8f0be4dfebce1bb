package receipts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// sweepAtOnce is the number of receipts that one pruning reads in the order of their keys.
const sweepAtOnce = 20_000

// sweepKey is the key under which the place is stored where the next sweep begins.
const sweepKey = "sweep"

// Prune deletes the receipts that were closed more than [Age] ago, and calls damaged with those that do
// not decode. If a receipt was closed more than Age in the future, due to a wrong clock, its age counts
// from now on. Prune finds receipts by the index, so it reads only those that it deletes, and a bounded
// number of others that the index may lack. It returns the number of deleted receipts.
func Prune(ctx context.Context, store storage.Store, now time.Time, damaged func(entry storage.Entry, err error) error) (int, error) {
	p := &pruner{store: store, now: now, damaged: damaged}
	for _, prune := range []func(context.Context) error{p.pruneIndexed, p.sweep} {
		if err := errors.Join(prune(ctx), p.flush(ctx)); err != nil {
			return p.removed, err
		}
	}
	return p.removed, nil
}

// pruner deletes receipts with their entries in the index. It deletes many in one write, because each
// write waits for the disk and delays the chats.
type pruner struct {
	store   storage.Store
	now     time.Time
	damaged func(entry storage.Entry, err error) error
	removed int

	units [][]storage.Op // each is applied whole or not at all; one that deletes a receipt begins with the deletion
}

// pruneIndexed prunes the receipts that the index has outside the last [Age] and the next.
func (p *pruner) pruneIndexed(ctx context.Context) error {
	var some []string
	collect := func(key string) (err error) {
		if some = append(some, key); len(some) == removeAtOnce {
			err = p.pruneEntries(ctx, some)
			some = some[:0]
		}
		return err
	}
	ahead := indexKeyAt(p.now.Add(Age))
	for _, r := range []storage.Range{{Prefix: indexPrefix}, {Prefix: indexPrefix, After: indexKeyAt(p.now.Add(-Age))}} {
		for entry, err := range Throttle(ctx, p.store.List(ctx, r)) {
			if err == nil && r.After == "" && entry.Key >= ahead {
				break
			}
			if err == nil {
				err = collect(entry.Key)
			}
			if err != nil {
				return fmt.Errorf("prune the index of receipts: %w", err)
			}
		}
	}
	return p.pruneEntries(ctx, some)
}

// pruneEntries prunes the receipts of some keys of the index.
func (p *pruner) pruneEntries(ctx context.Context, indexKeys []string) error {
	keys := make([]string, len(indexKeys))
	for i, indexKey := range indexKeys {
		key, _, _ := parseIndexKey(indexKey)
		keys[i] = Prefix + key
	}
	known, err := storage.GetMany(ctx, p.store, slices.Compact(slices.Sorted(slices.Values(keys))))
	if err != nil {
		return fmt.Errorf("read receipts: %w", err)
	}
	for i, indexKey := range indexKeys {
		r := new(Receipt)
		entry, found := known[keys[i]]
		broken := json.Unmarshal(entry.Value, r)
		if found && broken != nil {
			if err := p.damaged(entry, broken); err != nil {
				return err
			}
		}
		if broken == nil && r.indexKey() == indexKey {
			err = p.pruneReceipt(ctx, entry, r)
		} else { // the receipt is gone or damaged, or was closed at another time
			err = p.add(ctx, storage.Delete(indexKey, storage.Any))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep reads some receipts in the order of their keys, and prunes those that the index does not lead to:
// their keys are too long for it, or they are damaged.
func (p *pruner) sweep(ctx context.Context) error {
	from, err := storage.Find(ctx, p.store, sweepKey)
	if err != nil {
		return err
	}
	count, last := 0, ""
	for entry, err := range Throttle(ctx, p.store.List(ctx, storage.Range{Prefix: Prefix, After: string(from.Value), Limit: sweepAtOnce})) {
		if err != nil {
			return fmt.Errorf("list receipts: %w", err)
		}
		count, last = count+1, entry.Key
		r := new(Receipt)
		if broken := json.Unmarshal(entry.Value, r); broken != nil {
			err = p.damaged(entry, broken)
		} else {
			err = p.pruneReceipt(ctx, entry, r)
		}
		if err != nil {
			return err
		}
	}
	if count < sweepAtOnce {
		last = "" // from the beginning
	}
	if last != string(from.Value) {
		if _, err := p.store.Put(ctx, sweepKey, []byte(last), storage.Any); err != nil {
			return fmt.Errorf("store where the sweep of receipts begins: %w", err)
		}
	}
	return nil
}

// pruneReceipt deletes a receipt that is older than [Age], and dates one from more than Age in the
// future to now.
func (p *pruner) pruneReceipt(ctx context.Context, entry storage.Entry, r *Receipt) error {
	age := p.now.Sub(r.Closed)
	if age >= -Age && age <= Age {
		return nil
	}
	var entryOps []storage.Op
	if indexKey := r.indexKey(); indexKey != "" {
		entryOps = append(entryOps, storage.Delete(indexKey, storage.Any))
	}
	if age > 0 {
		return p.add(ctx, append([]storage.Op{storage.Delete(entry.Key, entry.Revision)}, entryOps...)...)
	}
	r.Closed = p.now
	ops, err := r.Ops(entry.Revision)
	if err != nil {
		return err
	}
	return p.add(ctx, append(ops, entryOps...)...)
}

// removeAtOnce is the number of receipts that one write deletes.
const removeAtOnce = 100

func (p *pruner) add(ctx context.Context, unit ...storage.Op) error {
	if p.units = append(p.units, unit); len(p.units) < removeAtOnce {
		return nil
	}
	return p.flush(ctx)
}

// flush applies what was added. A receipt that has changed meanwhile is left to the next time.
func (p *pruner) flush(ctx context.Context) error {
	units := p.units
	p.units = nil
	err := p.write(ctx, units...)
	if errors.Is(err, storage.ErrConflict) {
		err = nil
		for _, unit := range units {
			if alone := p.write(ctx, unit); !errors.Is(alone, storage.ErrConflict) {
				err = cmp.Or(err, alone)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("remove old receipts: %w", err)
	}
	return nil
}

func (p *pruner) write(ctx context.Context, units ...[]storage.Op) error {
	if len(units) == 0 {
		return nil
	}
	if _, err := p.store.Write(ctx, slices.Concat(units...)...); err != nil {
		return err
	}
	for _, unit := range units {
		if unit[0].Kind == storage.KindDelete && strings.HasPrefix(unit[0].Key, Prefix) {
			p.removed++
		}
	}
	return nil
}

const (
	// restEvery is the number of items that [Throttle] yields between two rests, restTime the duration
	// of a rest. A record takes about 13 µs, so a scan uses at most an eighth of one processor.
	restEvery = 256
	restTime  = 25 * time.Millisecond
)

// Throttle yields the items of all, with regular rests, so that a scan of all records does not slow the
// chats down.
func Throttle[T any](ctx context.Context, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for item, err := range all {
			if n++; n%restEvery == 0 && err == nil {
				err = retry.Wait(ctx, restTime)
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}
