package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"go.etcd.io/bbolt"

	"oneclaw/storage"
)

// The buckets of a log. The sequence number of the log's own bucket distinguishes logs with the same
// name before and after a Drop.
var (
	bucketRecords = []byte("records")
	bucketLabels  = []byte("labels")
)

// appendFill is the fill ratio of pages that only grow at their end.
const appendFill = 0.95

// Append implements storage.Log.
func (s *Store) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	if _, err := s.write(ctx, fmt.Sprintf("append to %q", log), storage.Append(log, after, records...)); err != nil {
		return 0, err
	}
	return after + storage.Position(len(records)), nil
}

func appendRecords(logs *bbolt.Bucket, log string, after storage.Position, records []storage.Record) (err error) {
	bucket := logs.Bucket([]byte(log))
	if bucket == nil {
		if bucket, err = createLog(logs, log); err != nil {
			return err
		}
	}
	data, labels := bucket.Bucket(bucketRecords), bucket.Bucket(bucketLabels)
	data.FillPercent = appendFill
	for i, r := range records {
		pos := after + storage.Position(i) + 1
		if err := data.Put(positionKey(pos), encodeRecord(r)); err != nil {
			return err
		}
		if r.Label == "" {
			continue
		}
		if err := labels.Put(labelKey(r.Label, pos), nil); err != nil {
			return err
		}
	}
	return nil
}

func createLog(logs *bbolt.Bucket, name string) (*bbolt.Bucket, error) {
	life, err := logs.NextSequence()
	if err != nil {
		return nil, err
	}
	bucket, err := logs.CreateBucket([]byte(name))
	if err != nil {
		return nil, err
	}
	if _, err := bucket.CreateBucket(bucketRecords); err != nil {
		return nil, err
	}
	if _, err := bucket.CreateBucket(bucketLabels); err != nil {
		return nil, err
	}
	return bucket, bucket.SetSequence(life)
}

// lastPosition returns the position of the last record, 0 if bucket is nil.
func lastPosition(bucket *bbolt.Bucket) (storage.Position, error) {
	if bucket == nil {
		return 0, nil
	}
	data := bucket.Bucket(bucketRecords)
	if data == nil || bucket.Bucket(bucketLabels) == nil {
		return 0, errUndecodable()
	}
	key, _ := data.Cursor().Last()
	return decodePosition(key, 0)
}

// Drop implements storage.Log.
func (s *Store) Drop(ctx context.Context, log string) error {
	if err := storage.CheckName("log name", log); err != nil {
		return fmt.Errorf("bolt: drop: %w", err)
	}
	err := s.submit(ctx, 0, func(b *batch) error {
		logs := b.tx.Bucket(bucketLogs)
		if logs.Bucket([]byte(log)) == nil {
			return nil
		}
		b.dirty = true
		return logs.DeleteBucket([]byte(log))
	})
	if err != nil {
		return fmt.Errorf("bolt: drop %q: %w", log, err)
	}
	return nil
}

// Erase implements storage.Log.
func (s *Store) Erase(ctx context.Context, log string, left ...storage.Record) error {
	err := storage.CheckRecords(log, left)
	if err == nil {
		err = s.submit(ctx, 0, func(b *batch) error { return b.erase(log, left) })
	}
	if err != nil {
		return fmt.Errorf("bolt: erase in %q: %w", log, err)
	}
	return nil
}

func (b *batch) erase(log string, left []storage.Record) error {
	bucket := b.tx.Bucket(bucketLogs).Bucket([]byte(log))
	if bucket == nil {
		return nil
	}
	data, labels := bucket.Bucket(bucketRecords), bucket.Bucket(bucketLabels)
	for _, l := range left {
		value := data.Get(positionKey(l.Pos))
		if value == nil {
			continue
		}
		r, err := decodeRecord(value)
		if err != nil {
			return err
		}
		b.dirty = true
		if err := data.Put(positionKey(l.Pos), encodeRecord(l)); err != nil {
			return err
		}
		if err := labels.Delete(labelKey(r.Label, l.Pos)); err != nil {
			return err
		}
		if l.Label == "" {
			continue
		}
		if err := labels.Put(labelKey(l.Label, l.Pos), nil); err != nil {
			return err
		}
	}
	return nil
}

// Logs implements storage.Log. It reads the names in pages, as List does.
func (s *Store) Logs(ctx context.Context, r storage.Range) iter.Seq2[string, error] {
	name := func(name, _ []byte) (string, error) { return string(name), nil }
	return list(ctx, s, "list logs", listing[string]{bucket: bucketLogs, r: r, decode: name})
}

// Records implements storage.Log. It reads the log in pages, up to the record that was the last one when
// the iteration began. A Drop between two pages ends the iteration with storage.ErrNotFound, even if
// records have been appended under the same name since.
func (s *Store) Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		if err := errors.Join(storage.CheckName("log name", log), storage.CheckLimit(q.Limit)); err != nil {
			yield(storage.Record{}, fmt.Errorf("bolt: read records: %w", err))
			return
		}
		sc := scan{log: []byte(log), q: q}
		yieldPages(ctx, s, sc.page, func(r storage.Record, err error) bool {
			if err != nil {
				err = fmt.Errorf("bolt: read records of %q: %w", log, err)
			}
			return yield(r, err)
		})
	}
}

// scan is the state of an iteration over a log between its pages.
type scan struct {
	log []byte
	q   storage.Query
	// prefix is the part of the keys before the position.
	prefix []byte
	begun  bool
	logID  uint64
	lo     storage.Position // first position that may still be yielded
	hi     storage.Position // last position that may still be yielded
	count  int
}

// page reads the next page, from where the previous one ended.
func (sc *scan) page(tx *bbolt.Tx) (records []storage.Record, done bool, err error) {
	bucket := tx.Bucket(bucketLogs).Bucket(sc.log)
	if !sc.begun {
		if err := sc.begin(bucket); err != nil {
			return nil, true, err
		}
	} else if bucket == nil || bucket.Sequence() != sc.logID {
		return nil, true, fmt.Errorf("%w: the log was dropped while it was read", storage.ErrNotFound)
	}
	if sc.lo > sc.hi {
		return nil, true, nil
	}
	data, size := bucket.Bucket(bucketRecords), 0
	for key, value := range sc.entries(bucket) {
		pos, err := decodePosition(key, len(sc.prefix))
		if err != nil || pos < sc.lo || pos > sc.hi {
			return records, true, err
		}
		if sc.q.Label != "" {
			value = data.Get(positionKey(pos)) // the index holds no data
		}
		r, err := decodeRecord(value)
		if err != nil {
			return nil, true, err
		}
		r.Pos = pos
		records = append(records, r)
		size += len(r.Data)
		sc.count++
		if sc.advance(pos) {
			return records, true, nil
		}
		if size >= pageBytes || len(records) == pageEntries {
			return records, false, nil
		}
	}
	return records, true, nil
}

// begin computes the positions that the iteration will yield.
func (sc *scan) begin(bucket *bbolt.Bucket) error {
	last, err := lastPosition(bucket)
	if err != nil {
		return err
	}
	sc.begun, sc.lo, sc.hi = true, 1, last
	if sc.q.Label != "" {
		sc.prefix = labelPrefix(sc.q.Label)
	}
	if bucket != nil {
		sc.logID = bucket.Sequence()
	}
	if sc.q.Before != 0 {
		sc.hi = min(sc.hi, sc.q.Before-1)
	}
	if sc.q.After >= sc.hi {
		sc.hi = 0
		return nil
	}
	sc.lo = sc.q.After + 1
	return nil
}

// advance records that pos has been read, and reports whether it was the last position.
func (sc *scan) advance(pos storage.Position) bool {
	if sc.q.Backward {
		sc.hi = pos - 1
	} else {
		sc.lo = pos + 1
	}
	return sc.lo > sc.hi || sc.count == sc.q.Limit
}

// entries yields the keys that consist of the prefix and a position, with their values, beginning with
// the first position that may still be yielded.
func (sc *scan) entries(bucket *bbolt.Bucket) iter.Seq2[[]byte, []byte] {
	cursor := bucket.Bucket(bucketRecords).Cursor()
	if sc.q.Label != "" {
		cursor = bucket.Bucket(bucketLabels).Cursor()
	}
	from, step := sc.lo, cursor.Next
	if sc.q.Backward {
		from, step = sc.hi, cursor.Prev
	}
	return func(yield func(key, value []byte) bool) {
		key, value := seek(cursor, slices.Concat(sc.prefix, positionKey(from)), sc.q.Backward)
		for key != nil && bytes.HasPrefix(key, sc.prefix) && yield(key, value) {
			key, value = step()
		}
	}
}

// seek returns the entry of a key, or the next entry in the direction of the iteration.
func seek(cursor *bbolt.Cursor, target []byte, backward bool) (key, value []byte) {
	key, value = cursor.Seek(target)
	switch {
	case !backward:
	case key == nil:
		return cursor.Last()
	case !bytes.Equal(key, target):
		return cursor.Prev()
	}
	return key, value
}
