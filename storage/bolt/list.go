package bolt

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"oneclaw/storage"
)

// list yields the items of a range of a bucket, page by page.
func list[T any](ctx context.Context, s *Store, what string, l listing[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		wrapped := func(item T, err error) bool {
			if err != nil {
				err = fmt.Errorf("bolt: %s: %w", what, err)
			}
			return yield(item, err)
		}
		l := l // each iteration starts from the beginning
		if err := storage.CheckLimit(l.r.Limit); err != nil {
			var zero T
			wrapped(zero, err)
			return
		}
		yieldPages(ctx, s, l.page, wrapped)
	}
}

// listing is the state of an iteration over a range between its pages.
type listing[T any] struct {
	bucket []byte
	r      storage.Range
	decode func(name, b []byte) (T, error)
	count  int
}

func (l *listing[T]) page(tx *bbolt.Tx) (items []T, done bool, err error) {
	cursor := tx.Bucket(l.bucket).Cursor()
	prefix := []byte(l.r.Prefix)
	name, b := cursor.Seek([]byte(max(l.r.Prefix, l.r.After)))
	if l.r.After != "" && string(name) == l.r.After {
		name, b = cursor.Next()
	}
	for size := 0; size < pageBytes && len(items) < pageEntries; name, b = cursor.Next() {
		if name == nil || !bytes.HasPrefix(name, prefix) {
			return items, true, nil
		}
		item, err := l.decode(name, b)
		if err != nil {
			return nil, true, err
		}
		items = append(items, item)
		size += len(b)
		l.r.After = string(name)
		if l.count++; l.count == l.r.Limit {
			return items, true, nil
		}
	}
	return items, false, nil
}
