package storage

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
)

// ManyGetter is an optional interface of a [KV] that reads several keys at a lower cost than one after
// another.
type ManyGetter interface {
	// GetMany returns the newest versions of those keys that exist, each as Get does. Together they need
	// not be a snapshot.
	GetMany(ctx context.Context, keys []string) (map[string]Entry, error)
}

// GetMany reads several keys, in one call if kv is a [ManyGetter].
func GetMany(ctx context.Context, kv KV, keys []string) (map[string]Entry, error) {
	if many, ok := kv.(ManyGetter); ok {
		return many.GetMany(ctx, keys)
	}
	all := make(map[string]Entry, len(keys))
	for _, key := range keys {
		entry, err := kv.Get(ctx, key)
		if err == nil {
			all[key] = entry
		} else if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return all, nil
}

// ManyWatcher is an optional interface of a [KV] that watches several prefixes at once.
type ManyWatcher interface {
	// WatchMany is Watch for the keys that have one of some prefixes, in one sequence.
	WatchMany(ctx context.Context, prefixes []string) iter.Seq2[Event, error]
}

// WatchMany watches one or more prefixes. If kv is not a [ManyWatcher], it watches their common prefix, and
// leaves out the keys that have none of them.
func WatchMany(ctx context.Context, kv KV, prefixes []string) iter.Seq2[Event, error] {
	if many, ok := kv.(ManyWatcher); ok {
		return many.WatchMany(ctx, prefixes)
	}
	common := prefixes[0]
	for _, prefix := range prefixes {
		for !strings.HasPrefix(prefix, common) {
			common = common[:len(common)-1]
		}
	}
	changes := kv.Watch(ctx, common)
	return func(yield func(Event, error) bool) {
		for e, err := range changes {
			wanted := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(e.Key, prefix) })
			if (err != nil || wanted) && !yield(e, err) {
				return
			}
		}
	}
}
