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

// So many goroutines write, each about so many operations and bytes at once. Few of them
// make large groups, and one that waits for a lock does not hold up all writes.
const (
	writers       = 2
	maxGroup      = 256
	maxGroupBytes = 16 << 20
)

// The locks of a group: lockAll stands for the store and comes before all others in order.
const (
	maxLocks = 2 * maxGroup
	lockAll  = math.MinInt64
)

// kindDrop removes a log. It goes the way of the writes.
const kindDrop storage.Kind = -1

// write is a Write that waits for a writer.
type write struct {
	ops  []storage.Op
	done chan answer
}

// answer is what became of a write.
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

// submit hands a write to a writer and waits for the answer, or for the end of ctx: then
// its outcome is unknown.
func (s *Store) submit(ctx context.Context, ops []storage.Op) (storage.Revision, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	w := &write{ops: owned(ops), done: make(chan answer, 1)}
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

// owned returns operations that share no memory with the caller, who may go before they
// are written. No value and no data is nil in it, which would be NULL.
func owned(ops []storage.Op) []storage.Op {
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

// writeAll is one of the writers.
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

// gather adds the writes that wait now. One that does not fit is returned.
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

// commit has the server do a group and answers each of its writes.
func (s *Store) commit(g *group) {
	var revs []int64
	err := s.ask(context.Background(), func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, writeQuery, g.args()...).Scan(&revs)
	})
	if len(g.writes) > 1 && refused(err) {
		// One of them could not be done; alone, the others can.
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
		s.log.Error("nothing could be written", "writes", len(g.writes), "err", err)
	} else if slices.Max(revs) > 0 {
		s.changed(g)
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

// refused reports whether a server that goes on has refused a request: then nothing of it
// was done. One that is about to end may have done it.
func refused(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.SeverityUnlocalized == "ERROR"
}

const writeQuery = "SELECT oneclaw_write($1::bigint[], $2::boolean[], $3::int[], $4::int[], $5::bytea[], $6::bigint[], $7::bytea[], $8::int[], $9::bytea[], $10::bytea[])"

// group is some writes that one call does. No two name the same key or log, unless both
// only check it.
type group struct {
	writes   []*write
	size     int
	locks    map[int64]bool // by name: whether shared
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
		shared, taken := g.locks[lock] // by a name of this write with the same number, too
		g.locks[lock] = op.Kind == storage.KindCheck && (shared || !taken)
		g.addOp(op)
	}
	g.ends = append(g.ends, int32(len(g.kinds)))
	return true
}

func (g *group) addOp(op storage.Op) {
	kind, name, expected := int32(op.Kind), op.Key, expect(op)
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

// expect returns what an operation expects, as oneclaw_write wants it: -1 for anything. What
// no key and no log ever has is a conflict by itself.
func expect(op storage.Op) int64 {
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

// args returns the arguments of writeQuery. A server has room for some thousand locks, so
// that a group with many takes one instead that all others share.
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
