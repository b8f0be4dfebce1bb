package scale

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oneclaw/internal/database"
	"oneclaw/storage"
	"oneclaw/storage/replicas"
)

// pageRows is the number of rows that storage/postgres reads at once. walRow, walEntry and walCommit are
// the bytes that PostgreSQL writes to its log for a version of a row and for its entry in an index,
// besides their contents, and for a transaction. lookPause and notifyPause are the least pauses between
// the looks of a replica, and between its notifications of a channel.
const (
	pageRows    = 256
	walRow      = 90
	walEntry    = 72
	walCommit   = 60
	lookPause   = 5 * time.Millisecond
	notifyPause = 20 * time.Millisecond
)

// work counts what replicas ask of a database.
type work struct {
	reads, writes, looks, rowsRead, rowsWritten, walBytes, watched, notified, delivered atomic.Int64
}

// figures is the work at one moment.
type figures struct {
	reads, writes, looks, rowsRead, rowsWritten, walBytes, watched, notified, delivered float64
}

func (w *work) figures() figures {
	of := func(n *atomic.Int64) float64 { return float64(n.Load()) }
	return figures{of(&w.reads), of(&w.writes), of(&w.looks), of(&w.rowsRead), of(&w.rowsWritten), of(&w.walBytes), of(&w.watched), of(&w.notified), of(&w.delivered)}
}

// per returns the work since before, divided by n.
func (f figures) per(n float64, before figures) figures {
	return figures{
		(f.reads - before.reads) / n, (f.writes - before.writes) / n, (f.looks - before.looks) / n, (f.rowsRead - before.rowsRead) / n,
		(f.rowsWritten - before.rowsWritten) / n, (f.walBytes - before.walBytes) / n, (f.watched - before.watched) / n,
		(f.notified - before.notified) / n, (f.delivered - before.delivered) / n,
	}
}

// plus returns the sum of the work.
func (f figures) plus(g figures) figures { return f.per(1, g.per(-1, figures{})) }

// statements returns the number of statements.
func (f figures) statements() float64 { return f.reads + f.writes + f.looks + f.notified }

// listeners holds the stores of the replicas by the channels of their watches.
type listeners struct {
	mu        sync.Mutex
	byChannel map[string]map[*countedStore]int
}

func (l *listeners) add(s *countedStore, prefixes []string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, prefix := range prefixes {
		channel := database.ChannelOf(prefix)
		if l.byChannel[channel] == nil {
			l.byChannel[channel] = make(map[*countedStore]int)
		}
		if l.byChannel[channel][s] += n; l.byChannel[channel][s] == 0 {
			delete(l.byChannel[channel], s)
		}
	}
}

func (l *listeners) of(channel string) (all []*countedStore) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.byChannel[channel] {
		all = append(all, s)
	}
	return all
}

// countedStore is the store of one replica. It counts what storage/postgres would ask of the database,
// and fails once the replica is lost.
type countedStore struct {
	storage.Store

	messages, membership *work // the latter is that of keys of replicas
	listeners            *listeners
	lost                 atomic.Bool

	mu     sync.Mutex
	looked time.Time            // the last look
	told   map[string]time.Time // the last notification, by channel
}

var errLostReplica = errors.New("the replica is lost")

// workOf returns the counts for a key or a prefix.
func (s *countedStore) workOf(key string) *work {
	if strings.HasPrefix(key, replicas.Prefix) {
		return s.membership
	}
	return s.messages
}

func (s *countedStore) check() error {
	if s.lost.Load() {
		return errLostReplica
	}
	return nil
}

func (s *countedStore) Get(ctx context.Context, key string) (storage.Entry, error) {
	if err := s.check(); err != nil {
		return storage.Entry{}, err
	}
	work := s.workOf(key)
	work.reads.Add(1)
	entry, err := s.Store.Get(ctx, key)
	if err == nil {
		work.rowsRead.Add(1)
	}
	return entry, err
}

// GetMany implements storage.ManyGetter.
func (s *countedStore) GetMany(ctx context.Context, keys []string) (map[string]storage.Entry, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	s.messages.reads.Add(int64((len(keys) + pageRows - 1) / pageRows))
	all, err := storage.GetMany(ctx, s.Store, keys)
	s.messages.rowsRead.Add(int64(len(all)))
	return all, err
}

func (s *countedStore) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	return countPages(s, s.workOf(r.Prefix), s.Store.List(ctx, r))
}

func (s *countedStore) Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error] {
	return countPages(s, s.messages, s.Store.Records(ctx, log, q))
}

func (s *countedStore) Logs(ctx context.Context, r storage.Range) iter.Seq2[string, error] {
	return countPages(s, s.messages, s.Store.Logs(ctx, r))
}

func countPages[T any](s *countedStore, work *work, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := s.check(); err != nil {
			var zero T
			yield(zero, err)
			return
		}
		work.reads.Add(1)
		n := 0
		for item, err := range all {
			work.rowsRead.Add(1)
			if n++; n%pageRows == 0 {
				work.reads.Add(1)
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

func (s *countedStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	return s.Write(ctx, storage.Put(key, value, rev))
}

func (s *countedStore) Delete(ctx context.Context, key string, rev storage.Revision) error {
	_, err := s.Write(ctx, storage.Delete(key, rev))
	return err
}

func (s *countedStore) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	if _, err := s.Write(ctx, storage.Append(log, after, records...)); err != nil {
		return 0, err
	}
	return after + storage.Position(len(records)), nil
}

func (s *countedStore) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	work := s.workOf(ops[0].Key)
	work.writes.Add(1)
	rev, err := s.Store.Write(ctx, ops...)
	if err != nil {
		return rev, err
	}
	wal := int64(walCommit)
	for _, op := range ops {
		switch op.Kind {
		case storage.KindPut, storage.KindDelete:
			work.rowsWritten.Add(1)
			wal += walOf(op)
			s.notify(work, database.ChannelOf(op.Key))
		case storage.KindAppend:
			work.rowsWritten.Add(1 + int64(len(op.Records)))
			wal += walRow + int64(len(op.Log))
			for _, r := range op.Records {
				wal += walRow + walEntry + int64(len(r.Data)+len(r.Label))
				if r.Label != "" {
					wal += walEntry + int64(len(r.Label))
				}
			}
		}
	}
	work.walBytes.Add(wal)
	return rev, nil
}

// walOf returns the bytes of log for a new version of a row with two indexes. A deletion leaves a
// tombstone, which is deleted later.
func walOf(op storage.Op) int64 {
	key := int64(len(op.Key))
	wal := walRow + key + int64(len(op.Value)) + walEntry + key + walEntry
	if op.Kind == storage.KindDelete {
		wal += walEntry + walEntry
	}
	return wal
}

// notify counts a notification, which each listener follows by a look, unless the last one was less than
// notifyPause ago.
func (s *countedStore) notify(work *work, channel string) {
	if channel == "" {
		return
	}
	s.mu.Lock()
	due := time.Since(s.told[channel]) >= notifyPause
	if due {
		s.told[channel] = time.Now()
	}
	s.mu.Unlock()
	if !due {
		return
	}
	work.notified.Add(1)
	for _, other := range s.listeners.of(channel) {
		if other != s {
			work.delivered.Add(1)
		}
		other.look(work)
	}
}

// look counts a look for changes. Looks that follow one another at once are one.
func (s *countedStore) look(work *work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.looked) >= lookPause {
		s.looked = time.Now()
		work.looks.Add(1)
	}
}

func (s *countedStore) Watch(ctx context.Context, prefixes ...string) iter.Seq2[storage.Event, error] {
	changes := s.Store.Watch(ctx, prefixes...)
	return func(yield func(storage.Event, error) bool) {
		s.listeners.add(s, prefixes, 1)
		defer s.listeners.add(s, prefixes, -1)
		for e, err := range changes {
			if err == nil {
				err = s.check()
			}
			if s.workOf(e.Key).watched.Add(1); !yield(e, err) || err != nil {
				return
			}
		}
	}
}
