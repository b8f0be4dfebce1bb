package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"oneclaw/storage"
)

// Number of writers, and bounds of a group in operations and bytes. Few writers make large groups; with
// more than one, a writer that waits for a lock does not block all writes.
const (
	writers       = 2
	maxGroup      = 256
	maxGroupBytes = 16 << 20
)

// The locks of a group: lockAll covers the whole store and is taken before the others.
const (
	maxLocks = 2 * maxGroup
	lockAll  = math.MinInt64
)

// kindDrop drops a log, in the order of the writes.
const kindDrop storage.Kind = -1

// write is a Write that waits for a writer.
type write struct {
	ops  []storage.Op
	done chan answer
}

// answer is the result of a write.
type answer struct {
	rev storage.Revision
	err error
}

// Write implements storage.Store.
func (s *Store) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	return s.write(ctx, "write", ops...)
}

func (s *Store) write(ctx context.Context, what string, ops ...storage.Op) (rev storage.Revision, err error) {
	if err = storage.CheckOps(ops); err == nil {
		rev, err = s.submit(ctx, ops)
	}
	if err != nil {
		return 0, fmt.Errorf("postgres: %s: %w", what, err)
	}
	return rev, nil
}

// submit passes a write to a writer and waits for the result, or for the end of ctx, after which the
// outcome is unknown.
func (s *Store) submit(ctx context.Context, ops []storage.Op) (storage.Revision, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	w := &write{ops: copyOps(ops), done: make(chan answer, 1)}
	select {
	case s.writes <- w:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case a := <-w.done:
		return a.rev, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// copyOps copies operations, because the caller may return before they are written. It replaces nil
// values and data, which would be NULL.
func copyOps(ops []storage.Op) []storage.Op {
	ops = slices.Clone(ops)
	for i, op := range ops {
		if op.Kind == storage.KindPut {
			ops[i].Value = append([]byte{}, op.Value...)
		}
		ops[i].Records = slices.Clone(op.Records)
		for j, r := range op.Records {
			ops[i].Records[j].Data = append([]byte{}, r.Data...)
		}
	}
	return ops
}

// writeAll is the loop of a writer.
func (s *Store) writeAll() {
	var next *write
	for {
		if next == nil {
			var ok bool
			if next, ok = <-s.writes; !ok {
				return
			}
		}
		var g group
		g.add(next)
		next = s.gather(&g)
		s.commit(&g)
	}
}

// gather adds waiting writes to a group. It returns the first write that does not fit.
func (s *Store) gather(g *group) (next *write) {
	for len(g.kinds) < maxGroup && g.size < maxGroupBytes {
		select {
		case w, ok := <-s.writes:
			if !ok {
				return nil
			}
			if !g.add(w) {
				return w
			}
		default:
			return nil
		}
	}
	return nil
}

// commit sends a group to the server and returns its result to each write.
func (s *Store) commit(g *group) {
	var revs []int64
	err := s.withTimeout(context.Background(), func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, writeQuery, g.args()...).Scan(&revs, nil)
	})
	if len(g.writes) > 1 && isRefused(err) {
		// One of the writes could not be applied; retry each alone.
		for _, w := range g.writes {
			var alone group
			alone.add(w)
			s.commit(&alone)
		}
		return
	}
	if err == nil && len(revs) != len(g.writes) {
		err = fmt.Errorf("%d answers to %d writes", len(revs), len(g.writes))
	}
	if err != nil {
		s.log.Error("a group of writes failed", "writes", len(g.writes), "err", err)
	} else if slices.Max(revs) > 0 {
		s.notifyWatchers(g)
	}
	for i, w := range g.writes {
		switch {
		case err != nil:
			w.done <- answer{err: err}
		case revs[i] < 0:
			w.done <- answer{err: storage.ErrConflict}
		default:
			w.done <- answer{rev: storage.Revision(revs[i])}
		}
	}
}

// isRefused reports whether a running server refused a request, so that nothing was written. A server
// that is shutting down may have written it.
func isRefused(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.SeverityUnlocalized == "ERROR"
}

// writeQuery also writes to the server's log at a conflict, if there are synchronous standbys, so that
// its commit waits until they have what it conflicts with. A server shows a write that the standbys lack
// once the wait for them has been cancelled, and a conflict alone would wait for nothing.
const writeQuery = `SELECT revs, CASE WHEN -1 = ANY (revs) AND current_setting('synchronous_standby_names') <> ''
	THEN pg_logical_emit_message(true, 'oneclaw', '') END
FROM oneclaw_write($1::bigint[], $2::boolean[], $3::int[], $4::int[], $5::bytea[], $6::bigint[], $7::bytea[], $8::int[], $9::bytea[], $10::bytea[]) AS revs`

// group holds the writes of one call. No two of them name the same key or log, unless both only check it.
type group struct {
	writes   []*write
	size     int
	locks    map[int64]bool // by lock number: whether the lock is shared
	ends     []int32
	kinds    []int32
	names    [][]byte
	expected []int64
	values   [][]byte
	counts   []int32
	labels   [][]byte
	data     [][]byte
}

// add adds a write and reports whether it fits.
func (g *group) add(w *write) bool {
	if g.locks == nil {
		g.locks = map[int64]bool{}
	}
	for _, op := range w.ops {
		shared, taken := g.locks[lockOf(op)]
		if taken && (!shared || op.Kind != storage.KindCheck) {
			return false
		}
	}
	g.writes = append(g.writes, w)
	for _, op := range w.ops {
		lock := lockOf(op)
		shared, taken := g.locks[lock] // another name in this write may have the same lock
		g.locks[lock] = op.Kind == storage.KindCheck && (shared || !taken)
		g.addOp(op)
	}
	g.ends = append(g.ends, int32(len(g.kinds)))
	return true
}

func (g *group) addOp(op storage.Op) {
	kind, name, expected := int32(op.Kind), op.Key, expectedState(op)
	switch op.Kind {
	case storage.KindAppend:
		name = op.Log
	case kindDrop:
		kind, name = 5, op.Log
	}
	g.kinds = append(g.kinds, kind)
	g.names = append(g.names, []byte(name))
	g.expected = append(g.expected, expected)
	g.values = append(g.values, op.Value)
	g.counts = append(g.counts, int32(len(op.Records)))
	g.size += len(name) + len(op.Value)
	for _, r := range op.Records {
		g.labels = append(g.labels, []byte(r.Label))
		g.data = append(g.data, r.Data)
		g.size += len(r.Label) + len(r.Data)
	}
}

// expectedState returns the revision or position that an operation expects, in the form of
// oneclaw_write: -1 for any. A value that no key or log can have always conflicts.
func expectedState(op storage.Op) int64 {
	switch {
	case op.Kind == kindDrop:
		return -1
	case op.Kind == storage.KindAppend:
		return int64(min(op.After, math.MaxInt64))
	case op.Rev == storage.Any:
		return -1
	case op.Kind == storage.KindDelete && op.Rev == storage.Absent:
		return math.MaxInt64
	}
	return int64(min(op.Rev, math.MaxInt64))
}

// args returns the arguments of writeQuery. A server has room for a few thousand locks, so a large group
// takes only lockAll, and does not share it as other groups do.
func (g *group) args() []any {
	locks, shared := []int64{lockAll}, []bool{len(g.locks) <= maxLocks}
	if shared[0] {
		for _, l := range slices.Sorted(maps.Keys(g.locks)) {
			locks, shared = append(locks, l), append(shared, g.locks[l])
		}
	}
	return []any{locks, shared, g.ends, g.kinds, g.names, g.expected, g.values, g.counts, g.labels, g.data}
}

// lockOf returns the number of the lock of a key or a log. Two names may share one.
func lockOf(op storage.Op) int64 {
	h := fnv.New64a()
	if op.Key != "" {
		_, _ = io.WriteString(h, "key "+op.Key)
	} else {
		_, _ = io.WriteString(h, "log "+op.Log)
	}
	return int64(h.Sum64())
}
