package budget

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/price"
	"oneclaw/storage"
)

// Defaults of [Config].
const (
	// DefaultReplyTokens is what a reply is taken to come to before it is there.
	DefaultReplyTokens = 4000
	// DefaultHold is how long a reservation counts that nobody settles.
	DefaultHold = 20 * time.Minute
)

// Config is what a [Ledger] is made of.
type Config struct {
	// Store keeps the accounts.
	Store storage.Store
	// Limits returns the present limits. Nil means none.
	Limits func(ctx context.Context) (Limits, error)
	// Prices say what models cost; calls of others count in tokens alone.
	Prices price.Table
	// Location returns where a day begins at midnight. Nil means UTC.
	Location func() *time.Location
	// ReplyTokens is what is reserved for the reply to a call. 0 means
	// [DefaultReplyTokens].
	ReplyTokens int64
	// Exclusive says that no other process uses the store: reservations of others are of
	// a process that is no more, and count for nothing.
	Exclusive bool
	// GroupOf returns the group of a tool, empty for one that there is not. Nil means that
	// no account is kept of groups.
	GroupOf func(tool string) string
	// Hold is how long a reservation counts that nobody settles; it has to be longer than
	// a call may take. 0 means [DefaultHold].
	Hold time.Duration
	// Logger, if nil, discards.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Ledger keeps the accounts. It may be used concurrently. While there is something to
// write it has one goroutine, for which [Ledger.Close] waits.
type Ledger struct {
	cfg  Config
	log  *slog.Logger
	self string // begins the ids of its reservations

	ending chan struct{} // closed by Close
	hurry  chan struct{} // has one for an operation that is not lazy

	mu      sync.Mutex // guards what follows
	queue   []*operation
	writing bool
	closed  bool
	idle    sync.Cond // on mu: writing has become false

	// book belongs to the goroutine that writes; nil if it has to be read. Contended says
	// that other processes write as well.
	book      *book
	contended bool

	warned sync.Map // models without a price
}

// Open checks the configuration. It reads nothing.
func Open(cfg Config) (*Ledger, error) {
	if cfg.Store == nil {
		return nil, errors.New("budget: no store")
	}
	if cfg.ReplyTokens < 0 || cfg.Hold < 0 {
		return nil, errors.New("budget: a bound is negative")
	}
	if err := cfg.Prices.Check(); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	cfg.ReplyTokens = cmp.Or(cfg.ReplyTokens, DefaultReplyTokens)
	cfg.Hold = cmp.Or(cfg.Hold, DefaultHold)
	if cfg.Limits == nil {
		cfg.Limits = func(context.Context) (Limits, error) { return Limits{}, nil }
	}
	if cfg.Location == nil {
		cfg.Location = func() *time.Location { return time.UTC }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Ledger{cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), ending: make(chan struct{}), hurry: make(chan struct{}, 1), self: rand.Text()}
	l.idle.L = &l.mu
	return l, nil
}

// Close writes what is not written yet and ends the ledger, before the store is closed.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.ending)
	}
	for l.writing {
		l.idle.Wait()
	}
	return nil
}

// errClosed is returned by calls after Close.
var errClosed = errors.New("budget: closed")

// operation is something to be decided on the accounts.
type operation struct {
	// decide looks at the accounts, may change them, and reports whether it did. After
	// an error it has changed nothing. It is asked again if another process was faster.
	decide func(ctx context.Context, b *book, now time.Time) (changed bool, err error)
	// patient operations are tried again if the store fails; lazy ones are written a
	// little later.
	patient, lazy bool
	tries         int
	done          chan error
}

// do queues an operation. Those that are queued together are written together.
func (l *Ledger) do(how operation, decide func(ctx context.Context, b *book, now time.Time) (bool, error)) <-chan error {
	op := &how
	op.decide, op.done = decide, make(chan error, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		op.done <- errClosed
		return op.done
	}
	l.queue = append(l.queue, op)
	if !op.lazy {
		select {
		case l.hurry <- struct{}{}:
		default:
		}
	}
	if !l.writing {
		l.writing = true
		go l.write()
	}
	return op.done
}

// lazyTime is how much later lazy operations are written.
const lazyTime = 20 * time.Millisecond

// turnTime is how long a process that has written lets others write, while they do.
const turnTime = 20 * time.Millisecond

func (l *Ledger) write() {
	for {
		if l.contended {
			l.pause(turnTime, nil) // so that other processes have their turn
		}
		l.pause(lazyTime, l.hurry)
		l.mu.Lock()
		batch := l.queue
		l.queue = nil
		if len(batch) == 0 {
			l.writing = false
			l.idle.Broadcast()
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		l.carry(batch)
	}
}

// How often and how long a store that fails is given time.
const (
	maxTries  = 5
	tryAgain  = 200 * time.Millisecond
	writeTime = 30 * time.Second
)

func (l *Ledger) carry(batch []*operation) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTime) // what is written belongs to no caller
	defer cancel()
	failed, err := l.commit(ctx, batch)
	var again []*operation
	for _, op := range failed {
		if op.tries++; op.patient && op.tries < maxTries {
			again = append(again, op)
			continue
		}
		op.done <- err
	}
	if len(again) == 0 {
		return
	}
	l.log.Warn("usage cannot be written, trying again", "calls", len(again), "err", err)
	l.pause(tryAgain, nil)
	l.mu.Lock()
	l.queue = append(again, l.queue...)
	l.mu.Unlock()
}

// pause waits, not longer than until there is a hurry or the ledger ends.
func (l *Ledger) pause(d time.Duration, hurry <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-hurry:
	case <-l.ending:
	}
}

// commit decides a batch and writes what it comes to in one step. If the store does not
// take it, it returns the operations that were to be written; the others are done.
func (l *Ledger) commit(ctx context.Context, batch []*operation) ([]*operation, error) {
	results := make([]error, len(batch))
	changed := make([]bool, len(batch))
	err := l.decide(ctx, batch, results, changed)
	if err != nil {
		l.book = nil
	}
	var failed []*operation
	for i, op := range batch {
		if err != nil && changed[i] {
			failed = append(failed, op)
			continue
		}
		op.done <- results[i]
	}
	return failed, err
}

// decide has a batch decided and written, anew where another process was faster. After an
// error all that was to be written counts as changed.
func (l *Ledger) decide(ctx context.Context, batch []*operation, results []error, changed []bool) error {
	trouble := func(err error) error {
		for i := range changed {
			changed[i] = true // nothing was decided
		}
		return err
	}
	if err := l.beforehand(ctx); err != nil {
		return trouble(err)
	}
	for fresh := false; ; fresh = true {
		now := l.cfg.Now()
		b, err := l.open(ctx, now)
		if err != nil {
			return trouble(err)
		}
		b.used = make(map[string]bool)
		for i, op := range batch {
			changed[i], results[i] = op.decide(ctx, b, now)
		}
		if b.err != nil {
			return trouble(b.err)
		}
		if fresh || !l.stale(b, changed) {
			err = l.store(ctx, b)
			if !errors.Is(err, storage.ErrConflict) {
				return err
			}
			l.contended = true
		}
		if _, err := b.reread(ctx, slices.Collect(maps.Keys(b.used))); err != nil {
			return trouble(err)
		}
	}
}

// stale reports whether something was decided, and is not written, on what was read long
// ago: a write would find out what another process has changed since.
func (l *Ledger) stale(b *book, changed []bool) bool {
	return !l.cfg.Exclusive && slices.Contains(changed, false) && slices.Contains(slices.Collect(maps.Values(b.used)), true)
}

// beforehand reads again what every process writes, while others do: what is decided on old
// records is decided twice.
func (l *Ledger) beforehand(ctx context.Context) (err error) {
	if l.contended && l.book != nil {
		l.contended, err = l.book.reread(ctx, l.book.common())
	}
	return err
}

func (l *Ledger) store(ctx context.Context, b *book) error {
	ops, err := b.changes()
	if err != nil || len(ops) == 0 {
		return err
	}
	if !l.cfg.Exclusive {
		ops = append(ops, b.checks()...)
	}
	rev, err := l.cfg.Store.Write(ctx, ops...)
	if err != nil {
		return fmt.Errorf("write the accounts: %w", err)
	}
	b.written(rev)
	return nil
}

// open returns the accounts of today. A day does not begin twice: if the clock or the time
// zone goes back, or that of another process is ahead, the newer day goes on.
func (l *Ledger) open(ctx context.Context, now time.Time) (*book, error) {
	today := now.In(l.cfg.Location()).Format(time.DateOnly)
	if l.book == nil || len(l.book.records) > maxRecords {
		b := &book{store: l.cfg.Store, records: map[string]*record{}}
		if err := b.readDay(ctx); err != nil {
			return nil, err
		}
		if l.cfg.Exclusive {
			b.own = l.self // those of a process that is no more count for nothing
		}
		l.book = b
	}
	for l.book.day < today {
		rev, err := l.cfg.Store.Put(ctx, newestKey, []byte(today), l.book.begun)
		if errors.Is(err, storage.ErrConflict) {
			err = l.book.readDay(ctx) // another process has begun it
		} else if err == nil {
			l.book.day, l.book.begun = today, rev
			if err := l.forget(ctx, now); err != nil {
				l.log.Warn("accounts that are too old cannot be removed", "err", err)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("begin %s: %w", today, err)
		}
	}
	return l.book, nil
}

// forget removes the records that are too old. They sort by their days.
func (l *Ledger) forget(ctx context.Context, now time.Time) error {
	named := now.AddDate(0, 0, -keepNamedDays).Format(time.DateOnly)
	oldest := now.AddDate(0, 0, -KeepDays).Format(time.DateOnly)
	for entry, err := range l.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return err
		}
		period, rest, _ := strings.Cut(strings.TrimPrefix(entry.Key, prefix), "/")
		kind, _, _ := strings.Cut(rest, "/")
		old := period < oldest || period < named && (Kind(kind) == KindUser || Kind(kind) == KindChat)
		if strings.HasPrefix(entry.Key, everKey) {
			var total record
			old = json.Unmarshal(entry.Value, &total) == nil && total.Last < oldest
		}
		if !old {
			continue
		}
		if err := l.cfg.Store.Delete(ctx, entry.Key, entry.Revision); err != nil && !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	return nil
}
