package bolt

import (
	"context"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"oneclaw/storage"
)

// Errors of the KV do not contain the key, because some keys are secrets.

// Get implements storage.KV.
func (s *Store) Get(ctx context.Context, key string) (storage.Entry, error) {
	var e storage.Entry
	err := storage.CheckName("key", key)
	if err == nil {
		err = s.view(ctx, func(tx *bbolt.Tx) (err error) {
			b := tx.Bucket(bucketKV).Get([]byte(key))
			if b == nil {
				return storage.ErrNotFound
			}
			e, err = decodeEntry([]byte(key), b)
			return err
		})
	}
	if err != nil {
		return storage.Entry{}, fmt.Errorf("bolt: get: %w", err)
	}
	return e, nil
}

// Put implements storage.KV.
func (s *Store) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	return s.write(ctx, "put", storage.Put(key, value, rev))
}

// Delete implements storage.KV.
func (s *Store) Delete(ctx context.Context, key string, rev storage.Revision) error {
	_, err := s.write(ctx, "delete", storage.Delete(key, rev))
	return err
}

// currentRevision returns the current revision of a key, Absent if it does not exist.
func currentRevision(kv *bbolt.Bucket, key string) (storage.Revision, error) {
	b := kv.Get([]byte(key))
	if b == nil {
		return storage.Absent, nil
	}
	rev, _, err := decodeValue(b)
	return rev, err
}

// List implements storage.KV. It reads the entries in pages of at most 256 entries; each page is a
// snapshot.
func (s *Store) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	return list(ctx, s, "list", listing[storage.Entry]{bucket: bucketKV, r: r, decode: decodeEntry})
}

func decodeEntry(key, b []byte) (storage.Entry, error) {
	rev, value, err := decodeValue(b)
	return storage.Entry{Key: string(key), Value: append([]byte{}, value...), Revision: rev}, err
}
