package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"oneclaw/storage"
)

// Key prefixes of a [sharedStrangers].
const (
	strangerPrefix = "stranger/"
	toldPrefix     = strangerPrefix + "told/"
	hourKey        = strangerPrefix + "hour"
)

// sharedStrangers implements strangers in the store, for processes that share it.
type sharedStrangers struct{ store storage.Store }

// hour counts the answers of one hour.
type hour struct {
	Began   time.Time `json:"began"`
	Answers int       `json:"answers"`
}

func (n note) key() string {
	return toldPrefix + n.user + "/" + strconv.FormatBool(n.direct) + "/" + strconv.FormatBool(n.code)
}

func (b *sharedStrangers) tell(ctx context.Context, n note, now time.Time) (bool, error) {
	for {
		told, err := b.try(ctx, n, now)
		if !errors.Is(err, storage.ErrConflict) {
			return told, err
		}
	}
}

func (b *sharedStrangers) try(ctx context.Context, n note, now time.Time) (bool, error) {
	var own storage.Revision
	for _, known := range n.alike() {
		var at time.Time
		rev, err := b.read(ctx, known.key(), &at)
		if err != nil {
			return false, err
		}
		if rev != storage.Absent && now.Sub(at) < strangerInterval {
			return false, nil
		}
		if known == n {
			own = rev
		}
	}
	var h hour
	rev, err := b.read(ctx, hourKey, &h)
	if err != nil {
		return false, err
	}
	if now.Sub(h.Began) >= time.Hour {
		h = hour{Began: now}
	}
	if h.Answers >= maxStrangersAnHour {
		return false, nil
	}
	h.Answers++
	at, err := json.Marshal(now)
	if err != nil {
		return false, fmt.Errorf("encode when a stranger is told: %w", err)
	}
	count, err := json.Marshal(h)
	if err != nil {
		return false, fmt.Errorf("encode how many strangers are told: %w", err)
	}
	if _, err = b.store.Write(ctx, storage.Put(n.key(), at, own), storage.Put(hourKey, count, rev)); err != nil {
		return false, fmt.Errorf("note that a stranger is told: %w", err)
	}
	return true, nil
}

// read reads a record. One that does not decode counts as empty, and is overwritten.
func (b *sharedStrangers) read(ctx context.Context, key string, v any) (storage.Revision, error) {
	entry, err := b.store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Absent, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read which strangers were told: %w", err)
	}
	_ = json.Unmarshal(entry.Value, v)
	return entry.Revision, nil
}

func (b *sharedStrangers) forget(ctx context.Context, user string) error {
	if user != "" {
		user += "/"
	}
	return b.remove(ctx, toldPrefix+user, func(time.Time) bool { return true })
}

// prune deletes the records of strangers who may be told again.
func (b *sharedStrangers) prune(ctx context.Context, now time.Time) error {
	return b.remove(ctx, toldPrefix, func(at time.Time) bool { return now.Sub(at).Abs() >= strangerInterval })
}

func (b *sharedStrangers) remove(ctx context.Context, prefix string, pass func(at time.Time) bool) error {
	for entry, err := range b.store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return fmt.Errorf("list which strangers were told: %w", err)
		}
		var at time.Time
		if json.Unmarshal(entry.Value, &at) == nil && !pass(at) {
			continue
		}
		if err := b.store.Delete(ctx, entry.Key, entry.Revision); err != nil && !errors.Is(err, storage.ErrConflict) {
			return fmt.Errorf("forget that a stranger was told: %w", err)
		}
	}
	return nil
}
