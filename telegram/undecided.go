package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"oneclaw/storage"
)

const (
	// undecidedKey is the key of the updates of albums in groups in which no item mentions the bot yet.
	undecidedKey = "telegram/undecided"
	// undecidedAge is how long such an update is kept: the items of an album arrive within seconds.
	undecidedAge = time.Minute
	// Bounds of what is kept.
	maxUndecided      = 50
	maxUndecidedBytes = 256 << 10
)

// undecided keeps the updates with items of albums in groups until it is known whether a later item
// mentions the bot, for all processes.
type undecided struct {
	kv storage.KV // if nil, they are kept in memory

	mu       sync.Mutex // guards what follows, and orders the writes of this process
	items    []undecidedItem
	deleteAt time.Time // when to delete old items; zero if there is nothing to delete
}

type undecidedItem struct {
	ID    int64           `json:"id"` // of the update
	Album album           `json:"album"`
	At    time.Time       `json:"at"`
	Raw   json.RawMessage `json:"raw"`
}

// keep keeps updates, each of them once. Beyond the bounds it drops the oldest.
func (u *undecided) keep(ctx context.Context, added ...undecidedItem) error {
	if len(added) == 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.deleteAt = time.Now().Add(undecidedAge)
	return u.change(ctx, func(items []undecidedItem) []undecidedItem {
		for _, one := range added {
			if !slices.ContainsFunc(items, func(old undecidedItem) bool { return old.ID == one.ID }) {
				items = append(items, one)
			}
		}
		size := 0
		for i, one := range slices.Backward(items) {
			if size += len(one.Raw); size > maxUndecidedBytes || len(items)-i > maxUndecided {
				return items[i+1:]
			}
		}
		return items
	})
}

// find returns the kept updates of an album that are not old.
func (u *undecided) find(ctx context.Context, of album) (raws []json.RawMessage, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	items, _, err := u.load(ctx)
	for _, one := range items {
		if one.Album == of && !one.isOld() {
			raws = append(raws, one.Raw)
		}
	}
	return raws, err
}

// deleteOld deletes old updates, once those that this process kept last are old.
func (u *undecided) deleteOld(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.deleteAt.IsZero() || time.Now().Before(u.deleteAt) {
		return nil
	}
	err := u.change(ctx, func(items []undecidedItem) []undecidedItem { return items })
	if err == nil {
		u.deleteAt = time.Time{}
	}
	return err
}

func (one undecidedItem) isOld() bool { return time.Since(one.At) >= undecidedAge }

// change passes the updates that are not old to f, and stores those that f returns.
func (u *undecided) change(ctx context.Context, f func([]undecidedItem) []undecidedItem) error {
	err := storage.Retry(ctx, func() error {
		items, rev, err := u.load(ctx)
		if err != nil {
			return err
		}
		return u.write(ctx, f(slices.DeleteFunc(items, undecidedItem.isOld)), rev)
	})
	if err != nil {
		return fmt.Errorf("telegram: store the items of an album: %w", err)
	}
	return nil
}

// load returns the kept updates. An undecodable list counts as empty.
func (u *undecided) load(ctx context.Context) (items []undecidedItem, rev storage.Revision, err error) {
	if u.kv == nil {
		return u.items, storage.Absent, nil
	}
	items, rev, err = storage.Load[[]undecidedItem](ctx, u.kv, undecidedKey)
	if err != nil && rev == storage.Absent {
		return nil, rev, fmt.Errorf("telegram: the items of an album: %w", err)
	}
	return items, rev, nil
}

func (u *undecided) write(ctx context.Context, items []undecidedItem, rev storage.Revision) error {
	switch {
	case u.kv == nil:
		u.items = items
		return nil
	case len(items) == 0 && rev == storage.Absent:
		return nil
	case len(items) == 0:
		return u.kv.Delete(ctx, undecidedKey, rev)
	}
	_, err := storage.Save(ctx, u.kv, undecidedKey, items, rev)
	return err
}
