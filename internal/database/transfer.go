package database

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"oneclaw/storage"
	"oneclaw/storage/replicas"
)

// UnfinishedKey is a key that a store has while it is being filled. Such a store must not be served.
const UnfinishedKey = "transfer/unfinished"

// Bounds of one write to the target.
const (
	maxItems = 200
	maxBytes = 4 << 20
)

// errUnfinished is returned by checkFinished.
var errUnfinished = errors.New("the database is half filled, because a move or a restore into it was interrupted: run it again")

// readable is a store, or a snapshot of one, to read from.
type readable interface {
	// Get is as in storage.KV.
	Get(ctx context.Context, key string) (storage.Entry, error)
	// List is as in storage.KV.
	List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error]
	// Records is as in storage.Log.
	Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error]
	// Logs is as in storage.Log.
	Logs(ctx context.Context, r storage.Range) iter.Seq2[string, error]
	// NewestRevision returns an upper bound of the revisions of keys.
	NewestRevision(ctx context.Context) (storage.Revision, error)
}

// fillable is a store that can be filled.
type fillable interface {
	storage.Store

	// NewestRevision is as in [readable].
	NewestRevision(ctx context.Context) (storage.Revision, error)
	// RaiseRevisions makes later writes get higher revisions than rev.
	RaiseRevisions(ctx context.Context, rev storage.Revision) error
}

// checkFinished returns [errUnfinished] for a store that a move or a restore has left incomplete.
func checkFinished(ctx context.Context, store interface {
	Get(ctx context.Context, key string) (storage.Entry, error)
},
) error {
	_, err := store.Get(ctx, UnfinishedKey)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look for an unfinished move: %w", err)
	}
	return errUnfinished
}

// RecordCount counts the content of a store.
type RecordCount struct {
	Keys, Logs, Records int
	// Bytes counts values and the data of records.
	Bytes int64

	log string // of the last record
}

func (n *RecordCount) add(i item) {
	n.Bytes += int64(len(i.Data))
	if i.log == "" {
		n.Keys++
		return
	}
	n.Records++
	if i.log != n.log {
		n.Logs++
	}
	n.log = i.log
}

// replaceStore replaces the content of a store by that of another one, and then compares the two. progress,
// if not nil, is called after each write. No other process may write to either store meanwhile: a difference
// is an error. After an error the target stays marked as unfinished. Its revisions continue above those of
// the source, because they number jobs.
func replaceStore(ctx context.Context, from readable, to fillable, progress func(RecordCount)) (RecordCount, error) {
	if err := checkFinished(ctx, from); err != nil {
		return RecordCount{}, err
	}
	if err := clearStore(ctx, to); err != nil {
		return RecordCount{}, err
	}
	w := &itemWriter{to: to, progress: progress}
	for it, err := range items(ctx, from) {
		if err == nil {
			err = w.add(ctx, it)
		}
		if err != nil {
			return w.done, err
		}
	}
	if err := w.flush(ctx); err != nil {
		return w.done, err
	}
	total, err := compareStores(ctx, from, to)
	if err != nil {
		return total, err
	}
	newest, err := from.NewestRevision(ctx)
	if err == nil {
		err = to.RaiseRevisions(ctx, newest)
	}
	if err == nil {
		err = to.Delete(ctx, UnfinishedKey, storage.Any)
	}
	return total, err
}

// clearStore marks a store as unfinished and deletes everything else in it.
func clearStore(ctx context.Context, store storage.Store) error {
	if _, err := store.Put(ctx, UnfinishedKey, nil, storage.Any); err != nil {
		return fmt.Errorf("mark the target: %w", err)
	}
	for name, err := range store.Logs(ctx, storage.Range{}) {
		if err == nil {
			err = store.Drop(ctx, name)
		}
		if err != nil {
			return fmt.Errorf("drop a conversation: %w", err)
		}
	}
	for {
		var ops []storage.Op
		for entry, err := range store.List(ctx, storage.Range{Limit: maxItems}) {
			if err != nil {
				return fmt.Errorf("list the keys: %w", err)
			}
			if entry.Key != UnfinishedKey {
				ops = append(ops, storage.Delete(entry.Key, storage.Any))
			}
		}
		if len(ops) == 0 {
			return nil
		}
		if _, err := store.Write(ctx, ops...); err != nil {
			return fmt.Errorf("delete the keys: %w", err)
		}
	}
}

// item is a key with its value in Data, or a record of a log.
type item struct {
	key, log string
	storage.Record
}

// String returns what errors call an item.
func (i item) String() string {
	if i.log != "" {
		return fmt.Sprintf("record %d of the log %q", i.Pos, i.log)
	}
	return fmt.Sprintf("the key %q", i.key)
}

func (i item) equal(o item) bool {
	return i.key == o.key && i.log == o.log && i.Pos == o.Pos && i.Label == o.Label && bytes.Equal(i.Data, o.Data)
}

// items yields the content of a store, without the mark of an unfinished one and the records of replicas,
// which are not data.
func items(ctx context.Context, from readable) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		for entry, err := range from.List(ctx, storage.Range{}) {
			if err == nil && (entry.Key == UnfinishedKey || strings.HasPrefix(entry.Key, replicas.Prefix)) {
				continue
			}
			if !yield(item{key: entry.Key, Record: storage.Record{Data: entry.Value}}, err) || err != nil {
				return
			}
		}
		for name, err := range from.Logs(ctx, storage.Range{}) {
			if err != nil {
				yield(item{}, err)
				return
			}
			for r, err := range from.Records(ctx, name, storage.Query{}) {
				if !yield(item{log: name, Record: r}, err) || err != nil {
					return
				}
			}
		}
	}
}

// itemWriter writes items to an empty store.
type itemWriter struct {
	to       storage.Store
	progress func(RecordCount)
	done     RecordCount
	ops      []storage.Op
	items    int
	size     int
}

func (w *itemWriter) add(ctx context.Context, it item) error {
	if w.items == maxItems || w.size > 0 && w.size+len(it.Data) > maxBytes {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.items, w.size = w.items+1, w.size+len(it.Data)
	w.done.add(it)
	switch end := len(w.ops) - 1; {
	case it.log == "":
		w.ops = append(w.ops, storage.Put(it.key, it.Data, storage.Absent))
	case end >= 0 && w.ops[end].Log == it.log:
		w.ops[end].Records = append(w.ops[end].Records, it.Record)
	default:
		w.ops = append(w.ops, storage.Append(it.log, it.Pos-1, it.Record))
	}
	return nil
}

func (w *itemWriter) flush(ctx context.Context) error {
	if len(w.ops) == 0 {
		return nil
	}
	if _, err := w.to.Write(ctx, w.ops...); err != nil {
		return fmt.Errorf("write to the target: %w", err)
	}
	w.ops, w.items, w.size = nil, 0, 0
	if w.progress != nil {
		w.progress(w.done)
	}
	return nil
}

// compareStores returns the counts of two equal stores, or an error that names the first key or record
// that differs.
func compareStores(ctx context.Context, a, b readable) (n RecordCount, _ error) {
	next, stop := iter.Pull2(items(ctx, b))
	defer stop()
	for it, err := range items(ctx, a) {
		other, errOther, more := next()
		if err := errors.Join(err, errOther); err != nil {
			return n, fmt.Errorf("compare the databases: %w", err)
		}
		if !more || !it.equal(other) {
			return n, fmt.Errorf("database: %s is missing or another in the target", it)
		}
		n.add(it)
	}
	if other, err, more := next(); more {
		return n, cmp.Or(err, fmt.Errorf("database: %s is in the target alone", other))
	}
	return n, nil
}
