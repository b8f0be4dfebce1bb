package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// Exclusive says that no other process uses the store. Reservations are then kept in
	// memory alone: after a crash nobody would settle them, and nobody else has to see them.
	Exclusive bool
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
	cfg Config
	log *slog.Logger

	ending chan struct{} // closed by Close
	hurry  chan struct{} // has one for an operation that is not lazy

	mu      sync.Mutex // guards what follows
	queue   []*operation
	writing bool
	closed  bool
	idle    sync.Cond // on mu: writing has become false

	// The rest belongs to the goroutine that writes.
	state *state // nil where it has to be read
	last  storage.Position
	since int             // records behind the newest whole state
	open  map[string]hold // the reservations, where the store is exclusive

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
	l := &Ledger{cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), ending: make(chan struct{}), hurry: make(chan struct{}, 1), open: map[string]hold{}}
	l.idle.L = &l.mu
	return l, nil
}

// Close writes what is not written yet and ends the ledger. The store has to be open
// still.
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

// operation is something to be decided on the state and, mostly, written down.
type operation struct {
	// decide looks at the state and returns what is to be written, or nil, or an error
	// that ends the operation. It is asked again where another process was faster.
	decide func(s *state, now time.Time) (*event, error)
	// patient operations are tried again where the store fails; lazy ones are written a
	// little later.
	patient, lazy bool
	tries         int
	done          chan error
}

// do queues an operation. Those that are queued together are written together.
func (l *Ledger) do(how operation, decide func(s *state, now time.Time) (*event, error)) <-chan error {
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

// write carries out operations until there are no more.
func (l *Ledger) write() {
	for {
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

// carry decides a batch and writes it as one.
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
	l.log.Warn("usage can not be written, trying again", "calls", len(again), "err", err)
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

// commit writes what a batch comes to. Where the store does not take it, it returns the
// operations that were to be written; the others are done.
func (l *Ledger) commit(ctx context.Context, batch []*operation) ([]*operation, error) {
	for {
		if err := l.current(ctx); err != nil {
			return batch, err
		}
		var writers, readers []*operation
		var events []event
		now := l.cfg.Now()
		for _, op := range batch {
			e, err := op.decide(l.state, now)
			switch {
			case err != nil:
				op.done <- err
			case e == nil:
				readers = append(readers, op)
			default:
				e.Time = now
				l.state.apply(*e)
				if l.cfg.Exclusive && (e.Kind == eventReserve || e.Kind == eventSettle && e.Sum == nil) {
					readers = append(readers, op)
					continue
				}
				events, writers = append(events, *e), append(writers, op)
			}
		}
		err := l.append(ctx, events)
		if errors.Is(err, storage.ErrConflict) {
			// Another process has written: all is decided anew.
			l.state = nil
			batch = append(readers, writers...)
			continue
		}
		for _, op := range readers {
			op.done <- nil
		}
		if err != nil {
			l.state = nil
			return writers, err
		}
		for _, op := range writers {
			op.done <- nil
		}
		return nil, nil
	}
}
