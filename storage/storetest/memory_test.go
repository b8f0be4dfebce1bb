package storetest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"oneclaw/storage"
)

// memory is the simplest engine that is right, and, with a bug by name, one of
// many that are not.
type memory struct {
	bug string

	mu     sync.Mutex // guards what follows
	logs   map[string]*memoryLog
	kv     map[string]storage.Entry
	rev    storage.Revision
	events []storage.Event
	wake   chan struct{} // closed and replaced when something happens
	closed bool
}

type memoryLog struct {
	records []storage.Record
	labels  map[string][]storage.Position
}

var _ storage.Store = (*memory)(nil)

func newMemory(bug string) *memory {
	return &memory{bug: bug, logs: map[string]*memoryLog{}, kv: map[string]storage.Entry{}, wake: make(chan struct{})}
}

// reopen returns a store with the same data.
func (m *memory) reopen() *memory {
	n := newMemory(m.bug)
	n.logs, n.kv, n.rev = m.logs, m.kv, m.rev
	if m.is("counts revisions from 0 after reopening") {
		n.rev = 0
	}
	if m.is("loses the newest record on reopening") {
		for _, l := range n.logs {
			l.records = l.records[:len(l.records)-1]
		}
	}
	return n
}

func (m *memory) is(bug string) bool { return m.bug == bug }

// begin locks the store for a call.
func (m *memory) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil && !m.is("ignores contexts") {
		return err
	}
	m.mu.Lock()
	if m.closed && !m.is("answers after Close") {
		m.mu.Unlock()
		return storage.ErrClosed
	}
	return nil
}

func (m *memory) name(name string) error {
	if (name == "" && !m.is("takes empty names")) || (len(name) > storage.MaxKey && !m.is("takes long names")) {
		return storage.ErrInvalid
	}
	return nil
}

func (m *memory) bytes(b []byte, shared string) []byte {
	if m.is(shared) {
		return b
	}
	return bytes.Clone(b)
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		if m.is("cannot be closed twice") {
			return storage.ErrClosed
		}
		return nil
	}
	m.closed = true
	if !m.is("leaves watches open on Close") {
		close(m.wake)
		m.wake = make(chan struct{})
	}
	return nil
}

func (m *memory) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	if err := m.name(log); err != nil {
		return 0, err
	}
	keep := len(records)
	for i, r := range records {
		if len(r.Data) > storage.MaxValue || len(r.Label) > storage.MaxKey {
			keep = min(keep, i)
		}
	}
	if len(records) == 0 || (keep < len(records) && !m.is("writes the records before an invalid one")) {
		return 0, storage.ErrInvalid
	}
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	l := m.logs[log]
	if l == nil {
		l = &memoryLog{labels: map[string][]storage.Position{}}
	}
	if last := storage.Position(len(l.records)); after != last && !m.tolerates(after, last) {
		return 0, storage.ErrConflict
	}
	m.logs[log] = l
	m.add(l, records[:keep])
	if keep < len(records) {
		return 0, storage.ErrInvalid
	}
	return after + storage.Position(keep), nil
}

// tolerates are the bugs of the expected position.
func (m *memory) tolerates(after, last storage.Position) bool {
	return (m.is("appends behind a past position") && after < last) ||
		(m.is("appends behind a position to come") && after > last && last > 0) ||
		(m.is("begins a log at any position") && last == 0)
}

func (m *memory) add(l *memoryLog, records []storage.Record) {
	for i, r := range records {
		r.Pos = storage.Position(len(l.records) + 1)
		r.Data = m.bytes(r.Data, "keeps the caller's record")
		if m.is("forgets labels") {
			r.Label = ""
		}
		l.records = append(l.records, r)
		if i > 0 && m.is("indexes only the first label of an Append") {
			continue
		}
		l.labels[r.Label] = append(l.labels[r.Label], r.Pos)
	}
}

func (m *memory) Drop(ctx context.Context, log string) error {
	if err := m.name(log); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	l := m.logs[log]
	switch {
	case l != nil && m.is("keeps labels over a Drop"):
		l.records = nil
	case m.is("drops logs by prefix"):
		for name := range m.logs {
			if strings.HasPrefix(name, log) {
				delete(m.logs, name)
			}
		}
	case l == nil && m.is("cannot drop what does not exist"):
		return storage.ErrNotFound
	default:
		delete(m.logs, log)
	}
	return nil
}

func (m *memory) Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		records, err := m.query(ctx, log, q)
		if err != nil {
			yield(storage.Record{}, err)
			return
		}
		for i := 0; i < len(records); i++ {
			if err := ctx.Err(); err != nil && !m.is("ignores contexts") {
				yield(storage.Record{}, err)
				return
			}
			if m.is("reads what is appended meanwhile") {
				if now, err := m.query(ctx, log, q); err == nil && i < len(now) {
					records = now
				}
			}
			if i == 256 && m.is("ends after 256 records") {
				return
			}
			if !yield(records[i], nil) {
				return
			}
		}
	}
}

func (m *memory) query(ctx context.Context, log string, q storage.Query) ([]storage.Record, error) {
	if err := m.name(log); err != nil {
		return nil, err
	}
	if q.Limit < 0 && !m.is("takes negative limits") {
		return nil, storage.ErrInvalid
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	l := m.logs[log]
	if l == nil {
		return nil, nil
	}
	candidates := slices.Clone(l.records)
	if q.Label != "" {
		candidates = l.labelled(q.Label)
		if m.is("matches labels by prefix") {
			candidates = slices.DeleteFunc(slices.Clone(l.records), func(r storage.Record) bool { return !strings.HasPrefix(r.Label, q.Label) })
		}
		q.Label = ""
	}
	records := filter(candidates, m.misread(q))
	for i := range records {
		records[i].Data = m.bytes(records[i].Data, "yields its own record")
	}
	return records, nil
}

func (l *memoryLog) labelled(label string) []storage.Record {
	var records []storage.Record
	for _, pos := range l.labels[label] {
		if int(pos) <= len(l.records) {
			records = append(records, l.records[pos-1])
		}
	}
	return records
}

// misread are the bugs of queries.
func (m *memory) misread(q storage.Query) storage.Query {
	switch {
	case m.is("yields one more than the limit") && q.Limit > 0:
		q.Limit++
	case m.is("includes Before") && q.Before > 0:
		q.Before++
	case m.is("includes After") && q.After > 0:
		q.After--
	case m.is("ignores After when backward") && q.Backward:
		q.After = 0
	case m.is("reads backward queries with a limit forward") && q.Limit > 0:
		q.Backward = false
	}
	return q
}

func (m *memory) Get(ctx context.Context, key string) (storage.Entry, error) {
	if err := m.name(key); err != nil {
		return storage.Entry{}, err
	}
	if err := m.begin(ctx); err != nil {
		return storage.Entry{}, err
	}
	defer m.mu.Unlock()
	e, ok := m.kv[key]
	if !ok {
		return storage.Entry{}, storage.ErrNotFound
	}
	e.Value = m.bytes(e.Value, "returns its own value")
	return e, nil
}

// present returns what compare-and-set compares with.
func (m *memory) present(key string, rev storage.Revision, write string) (exists, ok bool) {
	e, exists := m.kv[key]
	ok = rev == storage.Any || rev == e.Revision ||
		m.is(write+" ignores the revision") ||
		(m.is(write+" takes Absent for Any") && rev == storage.Absent) ||
		(m.is(write+" takes revisions to come") && rev > e.Revision)
	return exists, ok
}

func (m *memory) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if err := m.name(key); err != nil || len(value) > storage.MaxValue {
		return 0, storage.ErrInvalid
	}
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	if _, ok := m.present(key, rev, "Put"); !ok {
		return 0, storage.ErrConflict
	}
	m.rev++
	e := storage.Entry{Key: key, Value: m.bytes(value, "keeps the caller's value"), Revision: m.rev}
	if m.is("counts revisions of a key from 1 after a deletion") {
		e.Revision = m.kv[key].Revision + 1
	}
	m.kv[key] = e
	m.tell(storage.Event{Entry: e})
	if m.is("returns the revision before") {
		return e.Revision - 1, nil
	}
	return e.Revision, nil
}

func (m *memory) Delete(ctx context.Context, key string, rev storage.Revision) error {
	if err := m.name(key); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	exists, ok := m.present(key, rev, "Delete")
	if !ok || (!exists && rev != storage.Any && !m.is("deletes what does not exist")) {
		return storage.ErrConflict
	}
	if !exists && !m.is("tells of deletions of nothing") {
		return nil
	}
	m.rev++
	delete(m.kv, key)
	if !m.is("does not tell of deletions") {
		m.tell(storage.Event{Entry: storage.Entry{Key: key, Revision: m.rev}, Deleted: true})
	}
	return nil
}

func (m *memory) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	return func(yield func(storage.Entry, error) bool) {
		entries, err := m.list(ctx, r)
		if err != nil {
			yield(storage.Entry{}, err)
			return
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil && !m.is("ignores contexts") {
				yield(storage.Entry{}, err)
				return
			}
			e.Value = m.bytes(e.Value, "lists its own values")
			if m.is("lists without values") {
				e.Value = nil
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (m *memory) list(ctx context.Context, r storage.Range) ([]storage.Entry, error) {
	if r.Limit < 0 {
		return nil, storage.ErrInvalid
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if r.Limit > 0 && m.is("lists one less than the limit") {
		r.Limit--
	}
	if m.is("finds nothing below the prefix 0xff") && strings.HasPrefix(r.Prefix, "\xff") {
		return nil, nil
	}
	entries := listModel(m.kv, r)
	if e, ok := m.kv[r.After]; ok && m.is("lists After itself") && strings.HasPrefix(r.After, r.Prefix) {
		entries = slices.Insert(entries, 0, e)
	}
	if len(entries) > 1 && m.is("lists in another order") {
		slices.SortFunc(entries, func(a, b storage.Entry) int {
			return strings.Compare(fmt.Sprintf("%q", b.Key), fmt.Sprintf("%q", a.Key))
		})
	}
	return entries, nil
}
