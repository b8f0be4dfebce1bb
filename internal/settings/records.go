package settings

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"oneclaw/internal/redact"
	"oneclaw/storage"
)

// records reads and writes the settings in the store.
type records struct {
	cfg    Config
	kv     storage.KV
	sealer *redact.Sealer
	log    *slog.Logger

	cache cache
	// usable is held from the check whether other providers can be asked to the write that ends one.
	usable sync.Mutex
}

// newID returns a random id that is easy to read aloud.
func newID(kind string) string { return kind + "_" + strings.ToLower(rand.Text()[:10]) }

// maxKeyLength bounds the length of an id or name in a key of the store.
const maxKeyLength = storage.MaxKey - len(groupOffPrefix)

// isValidID reports whether an id can be part of a key. There are no records with other ids.
func isValidID(id string) bool {
	return id != "" && len(id) <= maxKeyLength && utf8.ValidString(id) && !strings.ContainsRune(id, '/')
}

type cachedValue[T any] struct {
	value  T
	exists bool
}

// get reads a value; false if there is none. An invalid value is logged and counts as missing, so that
// it can be replaced. The value is shared with the cache, so callers must not change what it points to.
func get[T any](ctx context.Context, r *records, key string) (T, bool, error) {
	kept, changes := r.cache.get(key)
	if f, ok := kept.(cachedValue[T]); ok {
		return f.value, f.exists, nil
	}
	f, entry, err := fetch[T](ctx, r, key)
	if err == nil {
		r.cache.put(key, f, len(key)+len(entry.Value), changes)
	}
	return f.value, f.exists, err
}

// fetch reads a value from the store like get, without the cache.
func fetch[T any](ctx context.Context, r *records, key string) (f cachedValue[T], entry storage.Entry, err error) {
	if entry, f.exists, err = r.read(ctx, key); f.exists && !r.logIfInvalid(key, json.Unmarshal(entry.Value, &f.value)) {
		f = cachedValue[T]{}
	}
	return f, entry, err
}

func (r *records) read(ctx context.Context, key string) (storage.Entry, bool, error) {
	entry, err := storage.Find(ctx, r.kv, key)
	return entry, entry.Revision != storage.Absent, err
}

// logIfInvalid logs the fault of an invalid record. It reports whether the record is valid.
func (r *records) logIfInvalid(key string, fault error) bool {
	if fault != nil {
		r.log.Warn("ignoring an invalid setting", "key", key, "err", fault)
	}
	return fault == nil
}

// list reads all values with a key prefix. Invalid values are logged and left out.
func list[T any](ctx context.Context, r *records, below string) (map[string]T, error) {
	values := map[string]T{}
	for entry, err := range r.kv.List(ctx, storage.Range{Prefix: below}) {
		if err != nil {
			return nil, fmt.Errorf("settings: list %s: %w", below, err)
		}
		var value T
		if r.logIfInvalid(entry.Key, json.Unmarshal(entry.Value, &value)) {
			values[strings.TrimPrefix(entry.Key, below)] = value
		}
	}
	return values, nil
}

func (r *records) listNames(ctx context.Context, below string) ([]string, error) {
	var names []string
	for entry, err := range r.kv.List(ctx, storage.Range{Prefix: below}) {
		if err != nil {
			return nil, fmt.Errorf("settings: list %s: %w", below, err)
		}
		names = append(names, strings.TrimPrefix(entry.Key, below))
	}
	return names, nil
}

// update reads a value, changes it with f, and writes it. If another writer has changed the value in the
// meantime, it tries again. An error from f is returned, and nothing is written.
func update[T any](ctx context.Context, r *records, key string, f func(value *T, exists bool) error) error {
	return storage.Retry(ctx, func() error {
		present, entry, err := fetch[T](ctx, r, key)
		if err != nil {
			return err
		}
		if err := f(&present.value, present.exists); err != nil {
			return err
		}
		return r.put(ctx, key, present.value, entry.Revision)
	})
}

func (r *records) put(ctx context.Context, key string, value any, revision storage.Revision) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("settings: encode %s: %w", key, err)
	}
	return r.write(ctx, key, data, revision)
}

func (r *records) write(ctx context.Context, key string, data []byte, revision storage.Revision) error {
	defer r.cache.forget(key)
	if _, err := r.kv.Put(ctx, key, data, revision); err != nil {
		return fmt.Errorf("settings: write %s: %w", key, err)
	}
	return nil
}

// remove deletes a value, whatever its revision.
func (r *records) remove(ctx context.Context, key string) error {
	defer r.cache.forget(key)
	if err := r.kv.Delete(ctx, key, storage.Any); err != nil {
		return fmt.Errorf("settings: delete %s: %w", key, err)
	}
	return nil
}

// sortByName returns the values of a map, sorted by name and id.
func sortByName[T any](values map[string]T, names func(T) (name, id string)) []T {
	return slices.SortedFunc(maps.Values(values), func(a, b T) int {
		nameA, idA := names(a)
		nameB, idB := names(b)
		return cmp.Or(cmp.Compare(strings.ToLower(nameA), strings.ToLower(nameB)), cmp.Compare(idA, idB))
	})
}
