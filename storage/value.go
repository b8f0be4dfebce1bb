package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrUnchanged is returned by the function of [Retry] if there is nothing to write.
var ErrUnchanged = errors.New("storage: unchanged")

// maxTries is far more than others are likely to be ahead in a row.
const maxTries = 1000

// Retry changes what several writers may change at once: it calls try, which reads and writes with the
// revision that it has read, until that is no conflict. What try returns otherwise is returned,
// [ErrUnchanged] as nil.
func Retry(ctx context.Context, try func() error) error {
	for range maxTries {
		switch err := try(); {
		case errors.Is(err, ErrUnchanged):
			return nil
		case !errors.Is(err, ErrConflict):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
	return fmt.Errorf("%w after %d attempts", ErrConflict, maxTries)
}

// Find reads a key that may be missing: then it returns the zero entry, whose revision is [Absent].
func Find(ctx context.Context, kv KV, key string) (Entry, error) {
	entry, err := kv.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Entry{}, fmt.Errorf("read %s: %w", key, err)
	}
	return entry, nil
}

// Load reads a value that is stored as JSON, and its revision. If there is none, it returns the zero
// value and [Absent]. If it does not decode, it returns its revision with the error, for those who
// replace it; every other error comes with [Absent].
func Load[T any](ctx context.Context, kv KV, key string) (value T, rev Revision, err error) {
	entry, err := Find(ctx, kv, key)
	if err != nil || entry.Revision == Absent {
		return value, Absent, err
	}
	if err = json.Unmarshal(entry.Value, &value); err != nil {
		return *new(T), entry.Revision, fmt.Errorf("decode %s: %w", key, err)
	}
	return value, entry.Revision, nil
}

// Save stores a value as JSON, if its key still has the given revision. It returns the new one.
func Save(ctx context.Context, kv KV, key string, value any, rev Revision) (Revision, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return 0, fmt.Errorf("encode %s: %w", key, err)
	}
	if rev, err = kv.Put(ctx, key, data, rev); err != nil {
		return 0, fmt.Errorf("store %s: %w", key, err)
	}
	return rev, nil
}
