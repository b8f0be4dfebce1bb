package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"

	"oneclaw/storage"
)

// Append implements storage.Log.
func (s *Store) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	if _, err := s.write(ctx, fmt.Sprintf("append to %q", log), storage.Append(log, after, records...)); err != nil {
		return 0, err
	}
	return after + storage.Position(len(records)), nil
}

// Drop implements storage.Log.
func (s *Store) Drop(ctx context.Context, log string) error {
	err := storage.CheckName("log name", log)
	if err == nil {
		_, err = s.submit(ctx, []storage.Op{{Kind: kindDrop, Log: log}})
	}
	if err != nil {
		return fmt.Errorf("postgres: drop %q: %w", log, err)
	}
	return nil
}

// Erase implements storage.Log.
func (s *Store) Erase(ctx context.Context, log string, left ...storage.Record) error {
	err := storage.CheckRecords(log, left)
	if err == nil {
		positions, labels, data := make([]int64, len(left)), make([][]byte, len(left)), make([][]byte, len(left))
		for i, r := range left {
			positions[i] = int64(min(r.Pos, math.MaxInt64))
			labels[i], data[i] = []byte(r.Label), append([]byte{}, r.Data...) // nil would be NULL
		}
		err = s.request(ctx, func(ctx context.Context) error {
			_, err := s.pool.Exec(ctx, `UPDATE oneclaw_records r SET label = e.label, data = e.data
				FROM oneclaw_logs l, unnest($2::bigint[], $3::bytea[], $4::bytea[]) AS e (position, label, data)
				WHERE l.name = $1::bytea AND r.log = l.id AND r.position = e.position`, []byte(log), positions, labels, data)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("postgres: erase in %q: %w", log, err)
	}
	return nil
}

// Records implements storage.Log. It reads the log in pages, up to the record that was the last one when
// the iteration began. A Drop between two pages ends the iteration with storage.ErrNotFound, even if
// records have been appended under the same name since.
func (s reader) Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		if err := errors.Join(storage.CheckName("log name", log), storage.CheckLimit(q.Limit)); err != nil {
			yield(storage.Record{}, fmt.Errorf("postgres: read records: %w", err))
			return
		}
		sc := newScan(log, q)
		var err error
		for err == nil && !sc.done {
			var page []storage.Record
			err = s.request(ctx, func(ctx context.Context) (err error) {
				page, err = sc.page(ctx, s.db)
				return err
			})
			if err == nil {
				var more bool
				if more, err = yieldAll(ctx, page, yield); !more {
					return
				}
			}
		}
		if err != nil {
			yield(storage.Record{}, fmt.Errorf("postgres: read records of %q: %w", log, err))
		}
	}
}

// scan is the state of an iteration over a log between its pages.
type scan struct {
	log   []byte
	q     storage.Query
	query string
	id    int64 // id of the log, 0 before the first page
	lo    int64 // first position that may still be yielded
	hi    int64 // last position that may still be yielded
	left  int   // number of records that may still be yielded
	done  bool
}

func newScan(log string, q storage.Query) *scan {
	sc := &scan{log: []byte(log), q: q, query: recordsQuery(q), lo: 1, hi: math.MaxInt64, left: math.MaxInt}
	if q.After >= math.MaxInt64 {
		sc.done = true
		return sc
	}
	sc.lo = int64(q.After) + 1
	if q.Before != 0 {
		sc.hi = int64(min(q.Before-1, math.MaxInt64))
	}
	if q.Limit != 0 {
		sc.left = q.Limit
	}
	return sc
}

// recordsQuery returns the query that reads a page of a log together with the log's own row. An existing
// log yields at least one row, and all rows are from one snapshot.
func recordsQuery(q storage.Query) string {
	order, label := "position", ""
	if q.Backward {
		order = "position DESC"
	}
	if q.Label != "" {
		label = "AND label = $6::bytea AND label <> ''"
	}
	return fmt.Sprintf(`SELECT l.id, l.last, p.position, p.label, p.data FROM oneclaw_logs l LEFT JOIN LATERAL (
		SELECT position, label, data FROM (
			SELECT position, label, data, sum(octet_length(data)) OVER (ORDER BY %[1]s ROWS UNBOUNDED PRECEDING) - octet_length(data) AS size FROM (
				SELECT position, label, data FROM oneclaw_records
				WHERE log = l.id AND position BETWEEN $2::bigint AND $3::bigint %[2]s ORDER BY %[1]s LIMIT $4::int) AS r) AS r
		WHERE size < $5::int) AS p ON true
		WHERE l.name = $1::bytea ORDER BY p.%[1]s`, order, label)
}

// page reads the next page, from where the previous one ended.
func (sc *scan) page(ctx context.Context, db querier) ([]storage.Record, error) {
	limit := min(sc.left, pageItems)
	args := []any{sc.log, sc.lo, sc.hi, limit, pageBytes}
	if sc.q.Label != "" {
		args = append(args, []byte(sc.q.Label))
	}
	rows, _ := db.Query(ctx, sc.query, args...)
	var records []storage.Record
	var id, last, size int64
	var position *int64
	var label, data []byte
	_, err := pgx.ForEachRow(rows, []any{&id, &last, &position, &label, &data}, func() error {
		if position != nil {
			records = append(records, storage.Record{Pos: storage.Position(*position), Label: string(label), Data: data})
			size += int64(len(data))
		}
		data = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	return records, sc.advance(records, id, last, len(records) < limit && size < pageBytes)
}

// advance updates the scan after a page.
func (sc *scan) advance(records []storage.Record, id, last int64, end bool) error {
	if sc.id != 0 && sc.id != id {
		return fmt.Errorf("%w: the log was dropped while it was read", storage.ErrNotFound)
	}
	if sc.id == 0 {
		sc.id, sc.hi = id, min(sc.hi, last)
	}
	sc.left -= len(records)
	if n := len(records); n > 0 {
		if pos := int64(records[n-1].Pos); sc.q.Backward {
			sc.hi = pos - 1
		} else {
			sc.lo = pos + 1
		}
	}
	sc.done = end || sc.left == 0 || sc.lo > sc.hi
	return nil
}
