package storage

import (
	"context"
	"errors"
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
