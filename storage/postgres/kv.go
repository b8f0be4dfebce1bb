package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"oneclaw/storage"
)

// Errors of the KV do not contain the key, because some keys are secrets.

// querier is the connection pool of a store, or the transaction of a snapshot.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// reader reads keys and logs.
type reader struct {
	db querier
	// request calls ask, which sends a request to the server.
	request func(ctx context.Context, ask func(context.Context) error) error
}

// Get implements storage.KV.
func (s reader) Get(ctx context.Context, key string) (storage.Entry, error) {
	e := storage.Entry{Key: key}
	err := storage.CheckName("key", key)
	if err == nil {
		err = s.request(ctx, func(ctx context.Context) error {
			var rev int64
			err := s.db.QueryRow(ctx, "SELECT value, revision FROM oneclaw_kv WHERE key = $1::bytea AND value IS NOT NULL", []byte(key)).Scan(&e.Value, &rev)
			e.Revision = storage.Revision(rev)
			if errors.Is(err, pgx.ErrNoRows) {
				return storage.ErrNotFound
			}
			return err
		})
	}
	if err != nil {
		return storage.Entry{}, fmt.Errorf("postgres: get: %w", err)
	}
	return e, nil
}

// GetMany implements storage.ManyGetter.
func (s reader) GetMany(ctx context.Context, keys []string) (map[string]storage.Entry, error) {
	all := make(map[string]storage.Entry, len(keys))
	for some := range slices.Chunk(keys, pageItems) {
		names := make([][]byte, len(some))
		for i, key := range some {
			if err := storage.CheckName("key", key); err != nil {
				return nil, fmt.Errorf("postgres: get: %w", err)
			}
			names[i] = []byte(key)
		}
		err := s.request(ctx, func(ctx context.Context) error {
			rows, _ := s.db.Query(ctx, "SELECT key, value, revision FROM oneclaw_kv WHERE key = ANY ($1::bytea[]) AND value IS NOT NULL", names)
			entries, err := pgx.CollectRows(rows, scanEntry)
			for _, e := range entries {
				all[e.Key] = e
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("postgres: get: %w", err)
		}
	}
	return all, nil
}

func scanEntry(row pgx.CollectableRow) (e storage.Entry, err error) {
	var key []byte
	var rev int64
	err = row.Scan(&key, &e.Value, &rev)
	e.Key, e.Revision = string(key), storage.Revision(rev)
	return e, err
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

// Bounds of a page, which one request reads. The last item may exceed them.
const (
	pageItems = 256
	pageBytes = 1 << 20
)

// The sum in listQuery ends a page of large values early. The server knows the length of a value without
// reading the value.
const (
	listQuery = `SELECT key, value, revision FROM (
		SELECT key, value, revision, sum(octet_length(value)) OVER (ORDER BY key ROWS UNBOUNDED PRECEDING) - octet_length(value) AS size FROM (
			SELECT key, value, revision FROM oneclaw_kv
			WHERE key > $1::bytea AND key >= $2::bytea AND key < $3::bytea AND value IS NOT NULL ORDER BY key LIMIT $4::int) AS k) AS k
		WHERE size < $5::int ORDER BY key`
	logsQuery = `SELECT name FROM oneclaw_logs
		WHERE name > $1::bytea AND name >= $2::bytea AND name < $3::bytea ORDER BY name LIMIT $4::int`
)

// List implements storage.KV. It reads the entries in pages; each page is a snapshot.
func (s reader) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	page := func(ctx context.Context, r storage.Range) (entries []storage.Entry, done bool, err error) {
		rows, _ := s.db.Query(ctx, listQuery, []byte(r.After), []byte(r.Prefix), afterPrefix(r.Prefix), r.Limit, pageBytes)
		entries, err = pgx.CollectRows(rows, scanEntry)
		size := 0
		for _, e := range entries {
			size += len(e.Value)
		}
		return entries, len(entries) < r.Limit && size < pageBytes, err
	}
	return list(ctx, s, r, "list", page, func(e storage.Entry) string { return e.Key })
}

// Logs implements storage.Log. It reads the names in pages, as List does.
func (s reader) Logs(ctx context.Context, r storage.Range) iter.Seq2[string, error] {
	page := func(ctx context.Context, r storage.Range) (names []string, done bool, err error) {
		rows, _ := s.db.Query(ctx, logsQuery, []byte(r.After), []byte(r.Prefix), afterPrefix(r.Prefix), r.Limit)
		names, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			var name []byte
			err := row.Scan(&name)
			return string(name), err
		})
		return names, len(names) < r.Limit, err
	}
	return list(ctx, s, r, "list logs", page, func(name string) string { return name })
}

// list yields the items of a range page by page. The function page gets the remaining range, and reports
// whether the page is the last one.
func list[T any](ctx context.Context, s reader, r storage.Range, what string, page func(context.Context, storage.Range) ([]T, bool, error), name func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		left := cmp.Or(r.Limit, math.MaxInt)
		rest := r // each iteration starts from the beginning
		err := storage.CheckLimit(r.Limit)
		for done := false; err == nil && !done; {
			var items []T
			rest.Limit = min(left, pageItems)
			err = s.request(ctx, func(ctx context.Context) (err error) {
				items, done, err = page(ctx, rest)
				return err
			})
			if err != nil {
				break
			}
			if left -= len(items); left == 0 {
				done = true
			}
			if len(items) > 0 {
				rest.After = name(items[len(items)-1])
			}
			var more bool
			if more, err = yieldAll(ctx, items, yield); !more {
				return
			}
		}
		if err != nil {
			yield(zero, fmt.Errorf("postgres: %s: %w", what, err))
		}
	}
}

// yieldAll yields the items of a page until ctx ends, and reports whether the consumer wants more.
func yieldAll[T any](ctx context.Context, items []T, yield func(T, error) bool) (more bool, err error) {
	for _, item := range items {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		if !yield(item, nil) {
			return false, nil
		}
	}
	return true, nil
}

// afterPrefix returns the end of the range of names that begin with prefix: it sorts after all of these,
// and after no name that follows them.
func afterPrefix(prefix string) []byte {
	b := []byte(prefix)
	for len(b) > 0 && b[len(b)-1] == 0xff {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return bytes.Repeat([]byte{0xff}, storage.MaxKey+1)
	}
	b[len(b)-1]++
	return b
}
