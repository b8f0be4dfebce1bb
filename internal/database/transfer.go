package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"oneclaw/storage"
)

// Marker is the key of a store that a move has begun to fill and not finished. A store that has
// it must not be served.
const Marker = "transfer/unfinished"

// Bounds of one write to the target.
const (
	maxOps   = 200
	maxBytes = 4 << 20
)

// ErrNotEmpty is returned if the target has data that no move has left there.
var ErrNotEmpty = errors.New("database: the target is not empty")

// ErrUnfinished is returned by [Check].
var ErrUnfinished = errors.New("database: a move into this store has not been finished: run it again")

// Source is a store, or a snapshot of one, to read from.
type Source interface {
	// Get is as in storage.KV.
	Get(ctx context.Context, key string) (storage.Entry, error)
	// List is as in storage.KV.
	List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error]
	// Records is as in storage.Log.
	Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error]
	// Logs is as in storage.Log.
	Logs(ctx context.Context, r storage.Range) iter.Seq2[string, error]
	// Newest returns an upper bound of the revisions of keys.
	Newest(ctx context.Context) (storage.Revision, error)
}

// Target is a store that can be filled.
type Target interface {
	storage.Store

	// Newest is as in [Source].
	Newest(ctx context.Context) (storage.Revision, error)
	// Raise makes later writes get higher revisions than rev.
	Raise(ctx context.Context, rev storage.Revision) error
}

// CheckEmpty returns [ErrUnfinished] for a store that a move has left incomplete.
func CheckEmpty(ctx context.Context, store interface {
	Get(ctx context.Context, key string) (storage.Entry, error)
},
) error {
	_, err := store.Get(ctx, Marker)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look for an unfinished move: %w", err)
	}
	return ErrUnfinished
}

// RecordCount counts the content of a store.
type RecordCount struct {
	Keys, Logs, Records int
	// Bytes counts values and the data of records.
	Bytes int64
}

// MoveStore copies a store into an empty one, and then compares the two. It continues an
// interrupted move. progress, if not nil, is called after each write. No other process may write
// to either store meanwhile: a difference is an error, and the target stays marked as
// unfinished. Its revisions continue above those of the source, because they number jobs.
func MoveStore(ctx context.Context, from Source, to Target, progress func(RecordCount)) (RecordCount, error) {
	if err := CheckEmpty(ctx, from); err != nil {
		return RecordCount{}, fmt.Errorf("the store to move: %w", err)
	}
	if err := claim(ctx, to); err != nil {
		return RecordCount{}, err
	}
	w := &writer{to: to, progress: progress}
	if err := w.logs(ctx, from); err != nil {
		return w.done, err
	}
	if err := w.keys(ctx, from); err != nil {
		return w.done, err
	}
	total, err := CompareStores(ctx, from, to)
	if err != nil {
		return total, err
	}
	if err := raise(ctx, from, to); err != nil {
		return total, err
	}
	if err := to.Delete(ctx, Marker, storage.Any); err != nil {
		return total, fmt.Errorf("finish the move: %w", err)
	}
	return total, nil
}

func raise(ctx context.Context, from Source, to Target) error {
	newest, err := from.Newest(ctx)
	if err == nil {
		err = to.Raise(ctx, newest)
	}
	return err
}

// ClearStore empties a store for a move into it, which removes the marker that this sets.
func ClearStore(ctx context.Context, store storage.Store) error {
	if _, err := store.Put(ctx, Marker, nil, storage.Any); err != nil {
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
	return nil
}

// claim marks a store as being filled, and accepts one that is marked already.
func claim(ctx context.Context, to Target) error {
	err := CheckEmpty(ctx, to)
	if err == nil {
		for _, err := range to.List(ctx, storage.Range{Limit: 1}) {
			return cause("look into the target", err, ErrNotEmpty)
		}
		for _, err := range to.Logs(ctx, storage.Range{Limit: 1}) {
			return cause("look into the target", err, ErrNotEmpty)
		}
		_, err = to.Put(ctx, Marker, nil, storage.Absent)
	}
	if err != nil && !errors.Is(err, ErrUnfinished) {
		return fmt.Errorf("mark the target: %w", err)
	}
	return nil
}

func cause(doing string, err, otherwise error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return otherwise
}

// writer fills the target.
type writer struct {
	to       Target
	progress func(RecordCount)
	done     RecordCount
	ops      []storage.Op
	size     int
}

// add collects an operation, and writes a full batch.
func (w *writer) add(ctx context.Context, op storage.Op) error {
	if len(w.ops) == maxOps || w.size > 0 && w.size+len(op.Value) > maxBytes {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.ops, w.size = append(w.ops, op), w.size+len(op.Value)
	return nil
}

func (w *writer) flush(ctx context.Context) error {
	if len(w.ops) == 0 {
		return nil
	}
	if _, err := w.to.Write(ctx, w.ops...); err != nil {
		return fmt.Errorf("write to the target: %w", err)
	}
	w.done.Keys += len(w.ops)
	w.done.Bytes += int64(w.size)
	w.ops, w.size = nil, 0
	w.tell()
	return nil
}

func (w *writer) tell() {
	if w.progress != nil {
		w.progress(w.done)
	}
}

func (w *writer) logs(ctx context.Context, from Source) error {
	for name, err := range from.Logs(ctx, storage.Range{}) {
		if err != nil {
			return fmt.Errorf("list the conversations: %w", err)
		}
		if err := w.log(ctx, from, name); err != nil {
			return fmt.Errorf("move the log %q: %w", name, err)
		}
		w.done.Logs++
	}
	return nil
}

// log appends the records of a log that the target lacks.
func (w *writer) log(ctx context.Context, from Source, name string) error {
	var end storage.Position
	for r, err := range w.to.Records(ctx, name, storage.Query{Backward: true, Limit: 1}) {
		if err != nil {
			return err
		}
		end = r.Pos
	}
	var batch []storage.Record
	size := 0
	write := func() (err error) {
		if len(batch) == 0 {
			return nil
		}
		if end, err = w.to.Append(ctx, name, end, batch...); err != nil {
			return err
		}
		w.done.Records += len(batch)
		w.done.Bytes += int64(size)
		batch, size = nil, 0
		w.tell()
		return nil
	}
	for r, err := range from.Records(ctx, name, storage.Query{After: end}) {
		if err != nil {
			return err
		}
		if len(batch) == maxOps || size > 0 && size+len(r.Data) > maxBytes {
			if err := write(); err != nil {
				return err
			}
		}
		batch, size = append(batch, r), size+len(r.Data)
	}
	return write()
}

// keys writes what is missing or different in the target, and deletes what an earlier move wrote
// and the source no longer has.
func (w *writer) keys(ctx context.Context, from Source) error {
	for pair, err := range pairs(ctx, from, w.to) {
		if err != nil {
			return err
		}
		switch {
		case pair.in == nil:
			err = w.add(ctx, storage.Delete(pair.out.Key, storage.Any))
		case pair.out == nil || !bytes.Equal(pair.in.Value, pair.out.Value):
			err = w.add(ctx, storage.Put(pair.in.Key, pair.in.Value, storage.Any))
		}
		if err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// pair is a key of either store, or of both.
type pair struct{ in, out *storage.Entry }

// pairs merges the keys of two stores, without the marker.
func pairs(ctx context.Context, from, to Source) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		nextIn, stopIn := iter.Pull2(from.List(ctx, storage.Range{}))
		defer stopIn()
		nextOut, stopOut := iter.Pull2(to.List(ctx, storage.Range{}))
		defer stopOut()
		in, errIn, moreIn := nextIn()
		out, errOut, moreOut := nextOut()
		for moreIn || moreOut {
			if err := errors.Join(errIn, errOut); err != nil {
				yield(pair{}, fmt.Errorf("list the keys: %w", err))
				return
			}
			var p pair
			if moreIn && (!moreOut || in.Key <= out.Key) {
				entry := in
				p.in = &entry
			}
			if moreOut && (!moreIn || out.Key <= in.Key) {
				entry := out
				p.out = &entry
			}
			if p.in != nil {
				in, errIn, moreIn = nextIn()
			}
			if p.out != nil {
				out, errOut, moreOut = nextOut()
			}
			if p.out != nil && p.out.Key == Marker {
				continue
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// CompareStores returns the counts of two equal stores, or an error that names the first key or
// record that differs.
func CompareStores(ctx context.Context, a, b Source) (RecordCount, error) {
	var n RecordCount
	for p, err := range pairs(ctx, a, b) {
		switch {
		case err != nil:
			return n, err
		case p.in == nil:
			return n, fmt.Errorf("database: the key %q is in the target alone", p.out.Key)
		case p.out == nil:
			return n, fmt.Errorf("database: the key %q is not in the target", p.in.Key)
		case !bytes.Equal(p.in.Value, p.out.Value):
			return n, fmt.Errorf("database: the value of the key %q is another in the target", p.in.Key)
		}
		n.Keys++
		n.Bytes += int64(len(p.in.Value))
	}
	if err := sameNames(ctx, a, b); err != nil {
		return n, err
	}
	for name, err := range a.Logs(ctx, storage.Range{}) {
		if err == nil {
			err = compareLog(ctx, a, b, name, &n)
		}
		if err != nil {
			return n, err
		}
		n.Logs++
	}
	return n, nil
}

// sameNames finds logs that only one of two stores has.
func sameNames(ctx context.Context, a, b Source) error {
	next, stop := iter.Pull2(b.Logs(ctx, storage.Range{}))
	defer stop()
	for name, err := range a.Logs(ctx, storage.Range{}) {
		other, errOther, more := next()
		if err := errors.Join(err, errOther); err != nil {
			return fmt.Errorf("list the conversations: %w", err)
		}
		if !more || other != name {
			return fmt.Errorf("database: the stores do not have the same logs from %q on", name)
		}
	}
	if name, err, more := next(); more {
		return cause("list the conversations", err, fmt.Errorf("database: the log %q is in the target alone", name))
	}
	return nil
}

func compareLog(ctx context.Context, a, b Source, name string, n *RecordCount) error {
	next, stop := iter.Pull2(b.Records(ctx, name, storage.Query{}))
	defer stop()
	for r, err := range a.Records(ctx, name, storage.Query{}) {
		other, errOther, more := next()
		if err := errors.Join(err, errOther); err != nil {
			return fmt.Errorf("compare the log %q: %w", name, err)
		}
		if !more || r.Pos != other.Pos || r.Label != other.Label || !bytes.Equal(r.Data, other.Data) {
			return fmt.Errorf("database: record %d of the log %q is another in the target", r.Pos, name)
		}
		n.Records++
		n.Bytes += int64(len(r.Data))
	}
	if r, err, more := next(); more {
		return cause("compare the log", err, fmt.Errorf("database: record %d of the log %q is in the target alone", r.Pos, name))
	}
	return nil
}
