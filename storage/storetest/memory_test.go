package storetest

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"oneclaw/storage"
)

// memory is the simplest engine that is right, and, with a bug by name, one of
// many that are not.
type memory struct {
	*memoryData

	// For bugs: what this handle has read and written.
	read  map[string]storage.Entry
	wrote storage.Revision
}

// memoryData is what the handles of one store share.
type memoryData struct {
	bug string

	mu     sync.Mutex // guards what follows
	logs   map[string]*memoryLog
	kv     map[string]storage.Entry
	rev    storage.Revision
	perKey map[string]storage.Revision // for a bug
	events []memoryEvent
	wake   chan struct{} // closed and replaced when something happens
	closed bool
}

type memoryLog struct {
	records []storage.Record
	labels  map[string][]storage.Position
}

var _ storage.Store = (*memory)(nil)

func newMemory(bug string) *memory {
	data := &memoryData{
		bug: bug, logs: map[string]*memoryLog{}, kv: map[string]storage.Entry{},
		perKey: map[string]storage.Revision{}, wake: make(chan struct{}),
	}
	return data.handle()
}

// handle returns another handle on the same data. Closing one closes all.
func (m *memoryData) handle() *memory {
	return &memory{memoryData: m, read: map[string]storage.Entry{}}
}

// reopen returns a store with the same data.
func (m *memory) reopen() *memory {
	n := newMemory(m.bug)
	n.logs, n.kv, n.rev, n.perKey = m.logs, m.kv, m.rev, m.perKey
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

func (m *memoryData) is(bug string) bool { return m.bug == bug }

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
	case l != nil && m.is("lists dropped logs"):
		l.records, l.labels = nil, map[string][]storage.Position{}
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

func (m *memory) Erase(ctx context.Context, log string, left ...storage.Record) error {
	if err := storage.CheckRecords(log, left); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	l := m.logs[log]
	if l == nil && m.is("cannot erase in what does not exist") {
		return storage.ErrNotFound
	}
	for _, e := range left {
		pos := e.Pos
		if l == nil || pos == 0 || pos > storage.Position(len(l.records)) {
			continue
		}
		r := &l.records[pos-1]
		if !m.is("keeps labels of what is erased") {
			l.labels[r.Label] = slices.DeleteFunc(l.labels[r.Label], func(p storage.Position) bool { return p == pos })
		}
		*r = storage.Record{Pos: pos}
		if !m.is("leaves nothing of what is erased") {
			r.Label, r.Data = e.Label, bytes.Clone(e.Data)
			if r.Label != "" {
				l.labels[r.Label] = append(l.labels[r.Label], pos)
				slices.Sort(l.labels[r.Label])
			}
		}
		if m.is("moves up what is behind what is erased") {
			l.records = slices.Delete(l.records, int(pos)-1, int(pos))
		}
		if m.is("erases one record at a time") {
			break
		}
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
	if old, known := m.read[key]; known && m.is("remembers what a handle has read") {
		e, ok = old, true
	}
	if !ok {
		return storage.Entry{}, storage.ErrNotFound
	}
	m.read[key] = e
	e.Value = m.bytes(e.Value, "returns its own value")
	return e, nil
}
