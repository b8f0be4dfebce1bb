package bolt

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"oneclaw/storage"
)

// Errors of the KV do not repeat the key: some keys are secrets of the caller.

// Get implements storage.KV.
func (s *Store) Get(ctx context.Context, key string) (storage.Entry, error) {
	e := storage.Entry{Key: key}
	if err := checkName("key", key); err != nil {
		return storage.Entry{}, fmt.Errorf("bolt: get: %w", err)
	}
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketKV).Get([]byte(key))
		if b == nil {
			return storage.ErrNotFound
		}
		rev, value, err := decodeValue(b)
		e.Revision, e.Value = rev, append([]byte{}, value...)
		return err
	})
	if err != nil {
		return storage.Entry{}, fmt.Errorf("bolt: get: %w", err)
	}
	return e, nil
}

// Put implements storage.KV.
func (s *Store) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	err := checkName("key", key)
	if err == nil {
		err = checkLength("value", len(value), storage.MaxValue)
	}
	var written storage.Revision
	if err == nil {
		err = s.submit(ctx, len(value), func(b *batch) (err error) {
			written, err = put(b, key, value, rev)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("bolt: put: %w", err)
	}
	return written, nil
}

func put(b *batch, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	kv := b.tx.Bucket(bucketKV)
	present, err := revision(kv, key)
	if err != nil {
		return 0, err
	}
	if rev != storage.Any && rev != present {
		return 0, storage.ErrConflict
	}
	b.dirty = true
	seq, err := kv.NextSequence()
	if err != nil {
		return 0, err
	}
	written := storage.Revision(seq)
	b.events = append(b.events, storage.Event{Entry: storage.Entry{Key: key, Value: value, Revision: written}})
	return written, kv.Put([]byte(key), encodeValue(written, value))
}

// revision returns the present revision of a key, Absent where it does not exist.
func revision(kv *bbolt.Bucket, key string) (storage.Revision, error) {
	b := kv.Get([]byte(key))
	if b == nil {
		return storage.Absent, nil
	}
	rev, _, err := decodeValue(b)
	return rev, err
}

// Delete implements storage.KV.
func (s *Store) Delete(ctx context.Context, key string, rev storage.Revision) error {
	err := checkName("key", key)
	if err == nil {
		err = s.submit(ctx, 0, func(b *batch) error { return remove(b, key, rev) })
	}
	if err != nil {
		return fmt.Errorf("bolt: delete: %w", err)
	}
	return nil
}

func remove(b *batch, key string, rev storage.Revision) error {
	kv := b.tx.Bucket(bucketKV)
	present, err := revision(kv, key)
	switch {
	case err != nil:
		return err
	case present == storage.Absent && rev == storage.Any:
		return nil
	case present == storage.Absent, rev != storage.Any && rev != present:
		return storage.ErrConflict
	}
	b.dirty = true
	// The deletion has a revision of its own, so that the next version of the key
	// has a higher one than any before.
	seq, err := kv.NextSequence()
	if err != nil {
		return err
	}
	b.events = append(b.events, storage.Event{Entry: storage.Entry{Key: key, Revision: storage.Revision(seq)}, Deleted: true})
	return kv.Delete([]byte(key))
}

// List implements storage.KV. The entries are read in pages of at most 256
// entries; each page is of one moment.
func (s *Store) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	return func(yield func(storage.Entry, error) bool) {
		if err := checkLimit(r.Limit); err != nil {
			yield(storage.Entry{}, fmt.Errorf("bolt: list: %w", err))
			return
		}
		l := listing{r: r}
		yieldPages(ctx, s, l.page, func(e storage.Entry, err error) bool {
			if err != nil {
				err = fmt.Errorf("bolt: list: %w", err)
			}
			return yield(e, err)
		})
	}
}

// listing is the state of one List between its pages.
type listing struct {
	r     storage.Range
	count int
}

func (l *listing) page(tx *bbolt.Tx) (entries []storage.Entry, done bool, err error) {
	cursor := tx.Bucket(bucketKV).Cursor()
	prefix := []byte(l.r.Prefix)
	key, b := cursor.Seek([]byte(max(l.r.Prefix, l.r.After)))
	if l.r.After != "" && string(key) == l.r.After {
		key, b = cursor.Next()
	}
	for size := 0; size < pageBytes && len(entries) < pageEntries; key, b = cursor.Next() {
		if key == nil || !bytes.HasPrefix(key, prefix) {
			return entries, true, nil
		}
		rev, value, err := decodeValue(b)
		if err != nil {
			return nil, true, err
		}
		e := storage.Entry{Key: string(key), Value: append([]byte{}, value...), Revision: rev}
		entries = append(entries, e)
		size += len(value)
		l.r.After = e.Key
		if l.count++; l.count == l.r.Limit {
			return entries, true, nil
		}
	}
	return entries, false, nil
}
