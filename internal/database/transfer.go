package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"oneclaw/storage"
)

// UnfinishedKey is a key that a store has while a move
// into it is unfinished. Such a store must not be served.
const UnfinishedKey = "transfer/unfinished"

// Bounds of one write to the target.
const (
	maxOps   = 200
	maxBytes = 4 << 20
)

// ErrNotEmpty is returned if the target has data that does not come from a move.
var ErrNotEmpty = errors.New("database: the target is not empty")

// ErrUnfinished is returned by [CheckFinished].
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
	// NewestRevision returns an upper bound of the revisions of keys.
	NewestRevision(ctx context.Context) (storage.Revision, error)
}

// Target is a store that can be filled.
type Target interface {
	storage.Store

	// NewestRevision is as in [Source].
	NewestRevision(ctx context.Context) (storage.Revision, error)
	// RaiseRevisions makes later writes get higher revisions than rev.
	RaiseRevisions(ctx context.Context, rev storage.Revision) error
}

// CheckFinished returns [ErrUnfinished] for a store that a move has left incomplete.
func CheckFinished(ctx context.Context, store interface {
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
	return ErrUnfinished
}

// RecordCount counts the content of a store.
type RecordCount struct {
	Keys, Logs, Records int
	// Bytes counts values and the data of records.
	Bytes int64
}

// MoveStore copies a store into an empty one, and then compares the two. It continues an
// interrupted move, also if the source has changed since. progress, if not nil, is called after each write. No other process may write
// to either store meanwhile: a difference is an error, and the target stays marked as
// unfinished. Its revisions continue above those of the source, because they number jobs.
func MoveStore(ctx context.Context, from Source, to Target, progress func(RecordCount)) (RecordCount, error) {
	if err := CheckFinished(ctx, from); err != nil {
		return RecordCount{}, fmt.Errorf("the store to move: %w", err)
	}
	if err := markTarget(ctx, to); err != nil {
		return RecordCount{}, err
	}
	w := &targetWriter{to: to, progress: progress}
	if err := w.copyLogs(ctx, from); err != nil {
		return w.done, err
	}
	if err := w.copyKeys(ctx, from); err != nil {
		return w.done, err
	}
	total, err := CompareStores(ctx, from, to)
	if err != nil {
		return total, err
	}
	if err := raiseRevisions(ctx, from, to); err != nil {
		return total, err
	}
	if err := to.Delete(ctx, UnfinishedKey, storage.Any); err != nil {
		return total, fmt.Errorf("finish the move: %w", err)
	}
	return total, nil
}

func raiseRevisions(ctx context.Context, from Source, to Target) error {
	newest, err := from.NewestRevision(ctx)
	if err == nil {
		err = to.RaiseRevisions(ctx, newest)
	}
	return err
}

// ClearStore prepares a store to be replaced by [MoveStore]: it marks the store as unfinished and drops
// its logs. MoveStore itself replaces and deletes the keys.
func ClearStore(ctx context.Context, store storage.Store) error {
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
	return nil
}

// markTarget marks a store as being filled. It accepts a store that is already marked.
func markTarget(ctx context.Context, to Target) error {
	err := CheckFinished(ctx, to)
	if err == nil {
		for _, err := range to.List(ctx, storage.Range{Limit: 1}) {
			return wrapOr("list the target", err, ErrNotEmpty)
		}
		for _, err := range to.Logs(ctx, storage.Range{Limit: 1}) {
			return wrapOr("list the target", err, ErrNotEmpty)
		}
		_, err = to.Put(ctx, UnfinishedKey, nil, storage.Absent)
	}
	if err != nil && !errors.Is(err, ErrUnfinished) {
		return fmt.Errorf("mark the target: %w", err)
	}
	return nil
}

func wrapOr(doing string, err, otherwise error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return otherwise
}

// targetWriter fills the target.
type targetWriter struct {
	to       Target
	progress func(RecordCount)
	done     RecordCount
	ops      []storage.Op
	size     int
}

// add collects an operation, and writes a full batch.
func (w *targetWriter) add(ctx context.Context, op storage.Op) error {
	if len(w.ops) == maxOps || w.size > 0 && w.size+len(op.Value) > maxBytes {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.ops, w.size = append(w.ops, op), w.size+len(op.Value)
	return nil
}

func (w *targetWriter) flush(ctx context.Context) error {
	if len(w.ops) == 0 {
		return nil
	}
	if _, err := w.to.Write(ctx, w.ops...); err != nil {
		return fmt.Errorf("write to the target: %w", err)
	}
	w.done.Keys += len(w.ops)
	w.done.Bytes += int64(w.size)
	w.ops, w.size = nil, 0
	w.reportProgress()
	return nil
}

func (w *targetWriter) reportProgress() {
	if w.progress != nil {
		w.progress(w.done)
	}
}

func (w *targetWriter) copyLogs(ctx context.Context, from Source) error {
	if err := w.dropLogs(ctx, from); err != nil {
		return err
	}
	for name, err := range from.Logs(ctx, storage.Range{}) {
		if err != nil {
			return fmt.Errorf("list the conversations: %w", err)
		}
		if err := w.copyLog(ctx, from, name); err != nil {
			return fmt.Errorf("move the log %q: %w", name, err)
		}
		w.done.Logs++
	}
	return nil
}

// dropLogs drops what an earlier move has copied of logs of which the source no longer has the same records:
// they were dropped, or records were erased.
func (w *targetWriter) dropLogs(ctx context.Context, from Source) error {
	for name, err := range w.to.Logs(ctx, storage.Range{}) {
		same := false
		if err == nil {
			same, err = isCopied(ctx, from, w.to, name)
		}
		if err == nil && !same {
			err = w.to.Drop(ctx, name)
		}
		if err != nil {
			return fmt.Errorf("continue a move: %w", err)
		}
	}
	return nil
}

// isCopied reports whether the target has only records of a log that the source has, too.
func isCopied(ctx context.Context, from, to Source, name string) (bool, error) {
	next, stop := iter.Pull2(from.Records(ctx, name, storage.Query{}))
	defer stop()
	for r, err := range to.Records(ctx, name, storage.Query{}) {
		other, errOther, more := next()
		if err := errors.Join(err, errOther); err != nil {
			return false, err
		}
		if !more || !equalRecords(r, other) {
			return false, nil
		}
	}
	return true, nil
}

func equalRecords(a, b storage.Record) bool {
	return a.Pos == b.Pos && a.Label == b.Label && bytes.Equal(a.Data, b.Data)
}

// copyLog appends the records of a log that the target lacks.
func (w *targetWriter) copyLog(ctx context.Context, from Source, name string) error {
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
		w.reportProgress()
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

// copyKeys writes what is missing or different in the target, and deletes what an earlier move wrote
// and the source no longer has.
func (w *targetWriter) copyKeys(ctx context.Context, from Source) error {
	for pair, err := range mergeKeys(ctx, from, w.to) {
		if err != nil {
			return err
		}
		switch {
		case pair.source == nil:
			err = w.add(ctx, storage.Delete(pair.target.Key, storage.Any))
		case pair.target == nil || !bytes.Equal(pair.source.Value, pair.target.Value):
			err = w.add(ctx, storage.Put(pair.source.Key, pair.source.Value, storage.Any))
		}
		if err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// keyPair is a key of either store, or of both.
type keyPair struct{ source, target *storage.Entry }

// mergeKeys merges the keys of two stores, without the marker.
func mergeKeys(ctx context.Context, from, to Source) iter.Seq2[keyPair, error] {
	return func(yield func(keyPair, error) bool) {
		nextIn, stopIn := iter.Pull2(from.List(ctx, storage.Range{}))
		defer stopIn()
		nextOut, stopOut := iter.Pull2(to.List(ctx, storage.Range{}))
		defer stopOut()
		in, errIn, moreIn := nextIn()
		out, errOut, moreOut := nextOut()
		for moreIn || moreOut {
			if err := errors.Join(errIn, errOut); err != nil {
				yield(keyPair{}, fmt.Errorf("list the keys: %w", err))
				return
			}
			var p keyPair
			if moreIn && (!moreOut || in.Key <= out.Key) {
				entry := in
				p.source = &entry
			}
			if moreOut && (!moreIn || out.Key <= in.Key) {
				entry := out
				p.target = &entry
			}
			if p.source != nil {
				in, errIn, moreIn = nextIn()
			}
			if p.target != nil {
				out, errOut, moreOut = nextOut()
			}
			if p.target != nil && p.target.Key == UnfinishedKey {
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
	for p, err := range mergeKeys(ctx, a, b) {
		switch {
		case err != nil:
			return n, err
		case p.source == nil:
			return n, fmt.Errorf("database: the key %q is in the target alone", p.target.Key)
		case p.target == nil:
			return n, fmt.Errorf("database: the key %q is not in the target", p.source.Key)
		case !bytes.Equal(p.source.Value, p.target.Value):
			return n, fmt.Errorf("database: the value of the key %q is another in the target", p.source.Key)
		}
		n.Keys++
		n.Bytes += int64(len(p.source.Value))
	}
	if err := compareLogNames(ctx, a, b); err != nil {
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

// compareLogNames returns an error if one of two stores has a log that the other lacks.
func compareLogNames(ctx context.Context, a, b Source) error {
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
		return wrapOr("list the conversations", err, fmt.Errorf("database: the log %q is in the target alone", name))
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
		if !more || !equalRecords(r, other) {
			return fmt.Errorf("database: record %d of the log %q is another in the target", r.Pos, name)
		}
		n.Records++
		n.Bytes += int64(len(r.Data))
	}
	if r, err, more := next(); more {
		return wrapOr("compare the log", err, fmt.Errorf("database: record %d of the log %q is in the target alone", r.Pos, name))
	}
	return nil
}
