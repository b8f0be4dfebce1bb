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

// Key prefixes of [sharedNotices].
const (
	strangerPrefix = "stranger/"
	notifiedPrefix = strangerPrefix + "told/"
	hourKey        = strangerPrefix + "hour"
)

// sharedNotices implements strangerNotices in the store, for processes that share it.
type sharedNotices struct{ store storage.Store }

// hourCount counts the notices of one hour.
type hourCount struct {
	Began   time.Time `json:"began"`
	Answers int       `json:"answers"`
}

func (n notice) key() string {
	return notifiedPrefix + n.user + "/" + strconv.FormatBool(n.direct) + "/" + strconv.FormatBool(n.aboutCode)
}

func (b *sharedNotices) recordNotice(ctx context.Context, n notice, now time.Time) (bool, error) {
	for {
		told, err := b.tryRecord(ctx, n, now)
		if !errors.Is(err, storage.ErrConflict) {
			return told, err
		}
	}
}

func (b *sharedNotices) tryRecord(ctx context.Context, n notice, now time.Time) (bool, error) {
	var own storage.Revision
	for _, known := range n.suppressedBy() {
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
	var h hourCount
	rev, err := b.read(ctx, hourKey, &h)
	if err != nil {
		return false, err
	}
	if now.Sub(h.Began) >= time.Hour {
		h = hourCount{Began: now}
	}
	if h.Answers >= maxStrangersAnHour {
		return false, nil
	}
	h.Answers++
	at, err := json.Marshal(now)
	if err != nil {
		return false, fmt.Errorf("encode the time of a notice to a stranger: %w", err)
	}
	count, err := json.Marshal(h)
	if err != nil {
		return false, fmt.Errorf("encode the count of notices to strangers: %w", err)
	}
	if _, err = b.store.Write(ctx, storage.Put(n.key(), at, own), storage.Put(hourKey, count, rev)); err != nil {
		return false, fmt.Errorf("record a notice to a stranger: %w", err)
	}
	return true, nil
}

// read reads a record. A record that does not decode counts as empty, and is overwritten.
func (b *sharedNotices) read(ctx context.Context, key string, v any) (storage.Revision, error) {
	entry, err := b.store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Absent, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the record of a notice to a stranger: %w", err)
	}
	_ = json.Unmarshal(entry.Value, v)
	return entry.Revision, nil
}

func (b *sharedNotices) forget(ctx context.Context, user string) error {
	if user != "" {
		user += "/"
	}
	return b.removeNotices(ctx, notifiedPrefix+user, func(time.Time) bool { return true })
}

// prune deletes the records of strangers who may get a notice again.
func (b *sharedNotices) prune(ctx context.Context, now time.Time) error {
	return b.removeNotices(ctx, notifiedPrefix, func(at time.Time) bool { return now.Sub(at).Abs() >= strangerInterval })
}

func (b *sharedNotices) removeNotices(ctx context.Context, prefix string, pass func(at time.Time) bool) error {
	for entry, err := range b.store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return fmt.Errorf("list the notices to strangers: %w", err)
		}
		var at time.Time
		if json.Unmarshal(entry.Value, &at) == nil && !pass(at) {
			continue
		}
		if err := b.store.Delete(ctx, entry.Key, entry.Revision); err != nil && !errors.Is(err, storage.ErrConflict) {
			return fmt.Errorf("delete the record of a notice to a stranger: %w", err)
		}
	}
	return nil
}
