package storetest

import (
	"context"
	"errors"
	"slices"

	"oneclaw/storage"
)

func (m *memory) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	got, err := m.Write(ctx, storage.Put(key, value, rev))
	if err == nil && m.is("returns the revision before") {
		got--
	}
	return got, err
}

func (m *memory) Delete(ctx context.Context, key string, rev storage.Revision) error {
	_, err := m.Write(ctx, storage.Delete(key, rev))
	return err
}

func (m *memory) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	if _, err := m.Write(ctx, storage.Append(log, after, records...)); err != nil {
		return 0, err
	}
	return after + storage.Position(len(records)), nil
}

func (m *memory) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if len(ops) == 0 && !m.is("takes a write of nothing") {
		return 0, storage.ErrInvalid
	}
	for i, op := range ops {
		again := func(other storage.Op) bool { return op.Key == other.Key && op.Log == other.Log }
		if m.invalid(op) || (slices.ContainsFunc(ops[:i], again) && !m.is("takes a key twice")) {
			return 0, storage.ErrInvalid
		}
	}
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	for i, op := range ops {
		if !m.fits(op) {
			if m.is("writes what comes before a conflict") {
				_, _ = m.apply(ops[:i])
			}
			return 0, storage.ErrConflict
		}
	}
	return m.apply(ops)
}

func (m *memory) invalid(op storage.Op) bool {
	if op.Kind != storage.KindAppend {
		return m.name(op.Key) != nil || len(op.Value) > storage.MaxValue
	}
	tooLong := slices.IndexFunc(op.Records, tooLarge)
	if m.is("writes the records before an invalid one") {
		tooLong = -1
	}
	return m.name(op.Log) != nil || len(op.Records) == 0 || tooLong >= 0
}

func tooLarge(r storage.Record) bool {
	return len(r.Data) > storage.MaxValue || len(r.Label) > storage.MaxKey
}

// fits reports whether an operation finds what it expects.
func (m *memory) fits(op storage.Op) bool {
	if op.Kind == storage.KindAppend {
		last := storage.Position(0)
		if l := m.logs[op.Log]; l != nil {
			last = storage.Position(len(l.records))
		}
		return op.After == last || m.tolerates(op.After, last)
	}
	write := map[storage.Kind]string{storage.KindPut: "Put", storage.KindDelete: "Delete", storage.KindCheck: "Check"}[op.Kind]
	e, exists := m.kv[op.Key]
	if op.Kind == storage.KindDelete && !exists && op.Rev != storage.Any {
		return m.is("deletes what does not exist")
	}
	return op.Rev == storage.Any || op.Rev == e.Revision ||
		m.is(write+" ignores the revision") ||
		(m.is(write+" takes Absent for Any") && op.Rev == storage.Absent) ||
		(m.is(write+" takes revisions to come") && op.Rev > e.Revision)
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

// apply does the operations of a write.
func (m *memory) apply(ops []storage.Op) (rev storage.Revision, err error) {
	for _, op := range ops {
		switch op.Kind {
		case storage.KindPut:
			rev = m.next(op.Key, rev)
			m.put(op.Key, op.Value, rev)
		case storage.KindDelete:
			rev = m.delete(op.Key, rev)
		case storage.KindCheck:
			if m.is("tells of checks") {
				m.tell(storage.Event{Entry: m.kv[op.Key]})
			}
		case storage.KindAppend:
			err = errors.Join(err, m.append(op.Log, op.Records))
		}
	}
	return rev, err
}

// next returns the revision of a write that has had rev so far.
func (m *memory) next(key string, rev storage.Revision) storage.Revision {
	switch {
	case m.is("counts revisions of a key from 1 after a deletion"):
		return m.kv[key].Revision + 1
	case m.is("counts the revisions of each key apart"):
		m.perKey[key]++
		return m.perKey[key]
	case m.is("counts revisions in each handle"):
		m.wrote++
		return m.wrote
	case rev != 0 && !m.is("gives each key of a write a revision of its own"):
		return rev
	}
	m.rev++
	return m.rev
}

func (m *memory) put(key string, value []byte, rev storage.Revision) {
	e := storage.Entry{Key: key, Value: m.bytes(value, "keeps the caller's value"), Revision: rev}
	m.kv[key] = e
	m.tell(storage.Event{Entry: e})
}

func (m *memory) delete(key string, rev storage.Revision) storage.Revision {
	if _, exists := m.kv[key]; !exists && !m.is("tells of deletions of nothing") {
		return rev
	}
	rev = m.next(key, rev)
	delete(m.kv, key)
	if !m.is("does not tell of deletions") {
		m.tell(storage.Event{Entry: storage.Entry{Key: key, Revision: rev}, Deleted: true})
	}
	return rev
}

func (m *memory) append(log string, records []storage.Record) error {
	l := m.logs[log]
	if l == nil {
		l = &memoryLog{labels: map[string][]storage.Position{}}
		m.logs[log] = l
	}
	if i := slices.IndexFunc(records, tooLarge); i >= 0 {
		m.add(l, records[:i])
		return storage.ErrInvalid
	}
	m.add(l, records)
	return nil
}
