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

	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// Defaults of [Config].
const (
	// DefaultReplyTokens is the assumed size of a reply.
	DefaultReplyTokens = 4000
	// DefaultReservationTTL is how long an unsettled reservation is valid.
	DefaultReservationTTL = 20 * time.Minute
)

// Config configures a [Ledger].
type Config struct {
	// Store stores the accounts.
	Store storage.Store
	// Limits returns the current limits. Nil means none.
	Limits func(ctx context.Context) (Limits, error)
	// Prices are the models' prices; calls of others count only in tokens.
	Prices PriceTable
	// Location returns the time zone of days. Nil means UTC.
	Location func() *time.Location
	// ReplyTokens is the number of tokens to reserve for a reply. 0 means [DefaultReplyTokens].
	ReplyTokens int64
	// Exclusive is set if no other process uses the store. Reservations by others then belong to
	// dead processes, and do not count.
	Exclusive bool
	// GroupOf returns the group of a tool, empty for an unknown one. If nil, there are no accounts
	// of groups.
	GroupOf func(tool string) string
	// ReservationTTL is how long an unsettled reservation is valid. It must be longer than a call
	// may take. 0 means [DefaultReservationTTL].
	ReservationTTL time.Duration
	// OnDamaged keeps a copy of a record that cannot be decoded, before the ledger replaces or deletes
	// the record. If nil, the error is only logged.
	OnDamaged func(ctx context.Context, entry storage.Entry) error
	// Logger may be nil.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// attempt is one batch to write. Its durable operations are retried under the same number until
// they are known to be stored, so that they are stored once.
type attempt struct {
	batch       []*operation
	number      int64
	days        []string // of the accounts that it may have changed
	addsCharges bool     // adds charges to the accounts, as every batch that reads accounts does
	tries       int      // since the ledger was closed
}

// Ledger keeps the accounts. It may be used concurrently. While there is something to write, it
// has one goroutine, for which [Ledger.Close] waits.
type Ledger struct {
	cfg  Config
	log  *slog.Logger
	self string // prefix of the ids of its reservations

	ending chan struct{} // closed by Close
	wake   chan struct{} // signals an operation that is not lazy

	mu           sync.Mutex // guards the fields up to idle
	queue        []*operation
	durableCount int // durable operations that are not stored yet
	writing      bool
	flush        context.CancelFunc // makes the store write the waiting lazy operations
	closed       bool
	idle         sync.Cond // on mu: writing has become false

	// The following fields, up to foreignCharges, belong to the goroutine that writes. book is nil
	// if it has to be read. contended is set while other processes write as well.
	book         *accountBook
	contended    bool
	number       int64   // of the newest write
	unconfirmed  attempt // a write that failed, or whose outcome is unknown
	acceptedDays string  // the stored day and the clock's day for which the former was accepted
	// charges are not added to the accounts yet. chargeRounds counts the rounds since there are any.
	// foreignCharges are the charges of other processes that the last search found, searchRounds
	// counts the rounds since that search, and searched is set once there was one.
	charges                    []charges
	chargeRounds, searchRounds int
	searched                   bool
	foreignCharges             map[string]storage.Revision

	warnedModels sync.Map // models without a price
}

// Open checks the configuration and makes a ledger. It reads nothing from the store.
func Open(cfg Config) (*Ledger, error) {
	if cfg.Store == nil {
		return nil, errors.New("budget: no store")
	}
	if cfg.ReplyTokens < 0 || cfg.ReservationTTL < 0 {
		return nil, errors.New("budget: a bound is negative")
	}
	if err := cfg.Prices.Check(); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	cfg.ReplyTokens = cmp.Or(cfg.ReplyTokens, DefaultReplyTokens)
	cfg.ReservationTTL = cmp.Or(cfg.ReservationTTL, DefaultReservationTTL)
	if cfg.Limits == nil {
		cfg.Limits = func(context.Context) (Limits, error) { return Limits{}, nil }
	}
	if cfg.Location == nil {
		cfg.Location = func() *time.Location { return time.UTC }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.OnDamaged == nil {
		cfg.OnDamaged = func(_ context.Context, entry storage.Entry) error {
			cfg.Logger.Error("a record does not decode and begins anew", "key", entry.Key)
			return nil
		}
	}
	l := &Ledger{cfg: cfg, log: cfg.Logger, ending: make(chan struct{}), wake: make(chan struct{}, 1), self: rand.Text(), flush: func() {}}
	l.idle.L = &l.mu
	return l, nil
}

// Close writes the remaining usage and closes the ledger. Call it before the store is closed. Usage
// that the store does not accept after a few tries is logged and lost.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.ending)
		l.flush()
	}
	for l.writing {
		l.idle.Wait()
	}
	return nil
}

// errClosed is returned by calls after Close.
var errClosed = errors.New("budget: closed")

// operation is a decision about the accounts.
type operation struct {
	// decide reads the accounts, may change them, and reports whether it has. After an error it has
	// changed nothing. It is called again if another process was faster.
	decide func(ctx context.Context, b *accountBook, now time.Time) (changed bool, err error)
	// durable operations are retried until the store accepts them.
	durable bool
	// lazy, if not nil, replaces decide: it adds charges, which are written a little later.
	lazy func(*charges)
	used Usage // the usage, for the log if it is lost
	done chan error
}

// maxDurable bounds the durable operations that wait for a failing store. Beyond it, no call is
// admitted that would have to be charged.
const maxDurable = 10_000

// errTooMuchUnwritten is returned if no more usage can be buffered.
var errTooMuchUnwritten = fmt.Errorf("budget: the usage of %d calls is not stored yet, so no model is called", maxDurable)

// admissionLimits returns the limits for a call of a payer, and [errTooMuchUnwritten] if no more usage can
// be buffered.
func (l *Ledger) admissionLimits(ctx context.Context, payer Payer) (Limits, error) {
	l.mu.Lock()
	full := l.durableCount >= maxDurable
	l.mu.Unlock()
	if full {
		return Limits{}, errTooMuchUnwritten
	}
	limits, err := l.cfg.Limits(ctx)
	if err != nil {
		return Limits{}, fmt.Errorf("budget: read the limits: %w", err)
	}
	limits.User = limits.User.lowerOf(payer.Limit)
	return limits, nil
}

// enqueue queues an operation. Operations that are queued together are written together.
func (l *Ledger) enqueue(how operation, decide func(ctx context.Context, b *accountBook, now time.Time) (bool, error)) <-chan error {
	op := &how
	op.decide, op.done = decide, make(chan error, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		op.done <- errClosed
		return op.done
	}
	l.queue = append(l.queue, op)
	if op.durable {
		l.durableCount++
	}
	if op.lazy == nil {
		l.flush()
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	if !l.writing {
		l.writing = true
		go l.writeLoop()
	}
	return op.done
}

// lazyDelay is the delay of lazy operations. The store may delay them again by as much, to join
// them with another write.
const lazyDelay = 20 * time.Millisecond

// yieldTime is the pause of a process after a write, while other processes write too.
const yieldTime = 20 * time.Millisecond

func (l *Ledger) writeLoop() {
	pauses := retry.New(retryPause, maxRetryPause)
	for {
		if l.contended {
			l.pause(yieldTime, nil) // give other processes their turn
		}
		l.pause(lazyDelay, l.wake)
		l.mu.Lock()
		batch := l.queue
		l.queue = nil
		if len(batch)+len(l.unconfirmed.batch)+len(l.charges) == 0 || l.closed && len(batch)+len(l.unconfirmed.batch) == 0 && l.chargeRounds > addAfterRounds {
			l.writing = false
			l.idle.Broadcast()
			l.mu.Unlock()
			return
		}
		adds := l.closed || l.chargesFull() || l.chargeRounds >= addAfterRounds
		l.mu.Unlock()
		if len(l.charges) > 0 {
			l.chargeRounds++
			l.searchRounds++
		}
		if len(batch)+len(l.unconfirmed.batch) == 0 && !adds {
			continue
		}
		if l.writeBatch(batch, adds) {
			pauses.Reset()
			continue
		}
		select {
		case <-l.ending:
			_ = retry.Wait(context.Background(), retryPause) // cannot be cancelled
		default:
			l.pause(pauses.Next(0), l.wake)
		}
	}
}

// Retries after an error of the store.
const (
	retryPause    = 200 * time.Millisecond
	maxRetryPause = 5 * time.Second
	writeTimeout  = 30 * time.Second
	closeTries    = 5 // after the ledger is closed
	closeTimeout  = 5 * time.Second
)

// writeBatch writes the unconfirmed attempt, then a batch, and reports whether nothing is unconfirmed
// afterwards. If adds is set, it also adds the charges to the accounts.
func (l *Ledger) writeBatch(batch []*operation, adds bool) bool {
	if len(l.unconfirmed.batch) > 0 {
		if err := l.tryWrite(l.unconfirmed); err != nil {
			l.requeue(batch, err)
			return false
		}
		l.log.Info("usage is written after earlier failures")
		l.unconfirmed = attempt{}
	}
	if len(batch) == 0 && (!adds || len(l.charges) == 0) {
		return true
	}
	l.number++
	next := attempt{batch: batch, number: l.number, addsCharges: adds}
	err := l.tryWrite(next)
	return err == nil || len(l.unconfirmed.batch) == 0
}

// requeue puts the durable operations of a batch back into the queue if an attempt is unconfirmed,
// and fails the others.
func (l *Ledger) requeue(batch []*operation, err error) {
	var waiting []*operation
	lost := Usage{}
	for _, op := range batch {
		if op.durable && len(l.unconfirmed.batch) > 0 {
			waiting = append(waiting, op)
			continue
		}
		lost = lost.plus(op.used)
		l.finish(op, err)
	}
	l.logLost(lost, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(waiting, l.queue...)
}

func (l *Ledger) logLost(lost Usage, err error) {
	if lost.Calls+lost.Searches > 0 {
		l.log.Error("usage could not be written and is lost", "calls", lost.Calls, "searches", lost.Searches, "tokens", lost.Tokens(), "money", lost.Money.String(), "err", err)
	}
}

// tryWrite writes a batch. After an error its durable operations are unconfirmed, unless the ledger
// is closed and has tried often enough.
func (l *Ledger) tryWrite(a attempt) error {
	limit := writeTimeout
	select {
	case <-l.ending:
		limit = closeTimeout
		a.tries++
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit) // the write outlives its callers
	defer cancel()
	failed, err := l.commit(ctx, &a)
	if err == nil {
		return nil
	}
	first := len(l.unconfirmed.batch) == 0
	l.unconfirmed = attempt{number: a.number, days: a.days, tries: a.tries, addsCharges: a.addsCharges}
	if l.chargeRounds = 0; a.tries > 0 {
		l.chargeRounds = addAfterRounds + 1 // it is closed: the rest is added at the next start
	}
	lost := Usage{}
	for _, op := range failed {
		if op.durable && a.tries < closeTries {
			l.unconfirmed.batch = append(l.unconfirmed.batch, op)
			continue
		}
		lost = lost.plus(op.used)
		l.finish(op, err)
	}
	l.logLost(lost, err)
	if first && len(l.unconfirmed.batch) > 0 {
		l.log.Warn("usage cannot be written and is retried", "calls", len(l.unconfirmed.batch), "err", err)
	}
	return err
}

// finish reports the result of an operation.
func (l *Ledger) finish(op *operation, err error) {
	if op.durable {
		l.mu.Lock()
		l.durableCount--
		l.mu.Unlock()
	}
	op.done <- err
}

// pause waits for d, or until hurry receives a value or the ledger is closed.
func (l *Ledger) pause(d time.Duration, hurry <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-hurry:
	case <-l.ending:
	}
}

// commit decides a batch and stores its changes in one write. If the store rejects the write, commit
// returns the operations that have changes. The others are finished.
func (l *Ledger) commit(ctx context.Context, a *attempt) ([]*operation, error) {
	results := make([]error, len(a.batch))
	changed := make([]bool, len(a.batch))
	err := l.decide(ctx, a, results, changed)
	if err != nil {
		l.book = nil
	}
	var failed []*operation
	for i, op := range a.batch {
		if err != nil && changed[i] {
			failed = append(failed, op)
			continue
		}
		l.finish(op, results[i])
	}
	return failed, err
}

// decide decides a batch and writes it. It repeats both if another process was faster. After an
// error, every operation that may have to be written is marked as changed.
func (l *Ledger) decide(ctx context.Context, a *attempt, results []error, changed []bool) error { //nolint:cyclop // One batch from reading to writing; each branch is one outcome of it.
	trouble := func(err error) error {
		for i := range changed {
			changed[i] = true // nothing was decided
		}
		return err
	}
	accounts := a.addsCharges
	for _, op := range a.batch {
		accounts = accounts || op.lazy == nil
	}
	if accounts {
		if err := l.refreshShared(ctx); err != nil {
			return trouble(err)
		}
	}
	for fresh := false; ; fresh = true {
		now := l.cfg.Now()
		b, err := l.openBook(ctx, now)
		if err != nil {
			return trouble(err)
		}
		b.used = make(map[string]bool)
		if stored, err := l.isStored(ctx, a, b); stored || err != nil {
			return err // the store had accepted it, although it returned an error
		}
		var also []storage.Op
		if accounts {
			if also, err = l.addCharges(ctx, b); err != nil {
				return trouble(err)
			}
		}
		added := charges{Day: b.day, key: l.ownChargesKey(a.number)}
		marked := false
		for i, op := range a.batch {
			switch {
			case op.lazy == nil:
				changed[i], results[i] = op.decide(ctx, b, now)
			case accounts: // they are written anyway
				at := charges{Day: b.day}
				op.lazy(&at)
				b.charge(ctx, at)
				changed[i], results[i] = true, nil
			default:
				op.lazy(&added)
				changed[i], results[i] = true, nil
			}
			marked = marked || accounts && changed[i]
		}
		if marked {
			b.markWrite(l.self, a.number, now)
		}
		if b.err != nil {
			return trouble(b.err)
		}
		if len(added.Sums) > 0 {
			op, err := added.writeOp()
			if err != nil {
				return trouble(err)
			}
			also = append(also, op)
		}
		if fresh || !accounts || !l.isStale(b, changed) {
			if !slices.Contains(a.days, b.day) {
				a.days = append(a.days, b.day)
			}
			added.rev, err = l.writeChanges(ctx, a, b, also)
			if err == nil {
				l.updateCharges(accounts, added)
				return nil
			}
			if !errors.Is(err, storage.ErrConflict) {
				return err
			}
			l.contended = accounts
			if err := l.refreshCharges(ctx); err != nil {
				return trouble(err)
			}
		}
		if _, err := b.reread(ctx, slices.Collect(maps.Keys(b.used))); err != nil {
			return trouble(err)
		}
	}
}

// isStored reports whether an earlier try of an attempt was stored.
func (l *Ledger) isStored(ctx context.Context, a *attempt, b *accountBook) (bool, error) {
	if len(a.days) == 0 {
		return false, nil
	}
	c, err := l.readCharges(ctx, l.ownChargesKey(a.number))
	if err != nil {
		return false, err
	}
	if len(c.Sums) > 0 {
		l.charges = append(l.charges, c)
	}
	return c.key != "" || slices.ContainsFunc(a.days, func(day string) bool { return b.total(ctx, day).LastWrites[l.self].Number == a.number }), nil
}

// updateCharges updates the charges after a write.
func (l *Ledger) updateCharges(added bool, fresh charges) {
	if added {
		l.charges, l.chargeRounds = nil, 0
	}
	if len(fresh.Sums) > 0 {
		l.charges = append(l.charges, fresh)
	}
}

// isStale reports whether an operation without changes was decided on cached records, which another
// process may have changed. A write would detect that, but such an operation writes nothing.
func (l *Ledger) isStale(b *accountBook, changed []bool) bool {
	return !l.cfg.Exclusive && slices.Contains(changed, false) && slices.Contains(slices.Collect(maps.Values(b.used)), true)
}

// refreshShared rereads the records that every process writes, if other processes write too. A
// decision on old records would have to be repeated.
func (l *Ledger) refreshShared(ctx context.Context) (err error) {
	if l.contended && l.book != nil {
		l.contended, err = l.book.reread(ctx, l.book.sharedKeys())
	}
	return err
}

// writeChanges writes a batch's changes to the accounts, along with other operations.
func (l *Ledger) writeChanges(ctx context.Context, a *attempt, b *accountBook, also []storage.Op) (storage.Revision, error) {
	ops, err := b.changes()
	if err != nil || len(ops)+len(also) == 0 {
		return 0, err
	}
	if !l.cfg.Exclusive && len(ops) > 0 {
		ops = append(ops, b.checks()...)
	}
	ops = append(ops, also...)
	var rev storage.Revision
	if due := l.writeDue(a); due == nil {
		rev, err = l.cfg.Store.Write(ctx, ops...)
	} else {
		rev, err = storage.WriteDeferred(ctx, l.cfg.Store, due, ops...)
	}
	if err != nil {
		return 0, fmt.Errorf("write the accounts: %w", err)
	}
	b.markStored(rev)
	return rev, nil
}

// writeDue returns a channel that is closed when a batch of lazy operations has to be written, and
// nil for other batches. The channel is closed at once if an operation arrives that is not lazy.
func (l *Ledger) writeDue(a *attempt) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, op := range slices.Concat(a.batch, l.queue) {
		if op.lazy == nil {
			return nil
		}
	}
	if l.closed {
		return nil
	}
	l.flush()
	due, cancel := context.WithTimeout(context.Background(), lazyDelay) // independent of any caller
	l.flush = cancel
	return due.Done()
}

// openBook returns today's accounts.
func (l *Ledger) openBook(ctx context.Context, now time.Time) (*accountBook, error) {
	if l.book == nil || len(l.book.records) > maxRecords {
		b := &accountBook{store: l.cfg.Store, records: map[string]*record{}, maxRemaining: l.cfg.ReservationTTL + 24*time.Hour, onDamaged: l.cfg.OnDamaged}
		var err error
		if b.day, b.dayRev, err = b.readDay(ctx); err != nil {
			return nil, err
		}
		if l.cfg.Exclusive {
			b.ownPrefix = l.self // reservations of dead processes do not count
		}
		l.book = b
	}
	if !l.searched || !l.cfg.Exclusive && l.searchRounds >= searchAfterRounds {
		l.searchRounds = 0
		if err := l.adoptCharges(ctx); err != nil {
			return nil, err
		}
	}
	return l.book, l.beginDay(ctx, l.book, now.In(l.cfg.Location()).Format(time.DateOnly))
}

// beginDay begins a new day. A day does not begin twice: if the clock or the time zone goes back,
// or another process's clock is ahead, the newer day continues, unless it is so far ahead that a
// clock must have been wrong.
func (l *Ledger) beginDay(ctx context.Context, b *accountBook, today string) error {
	for b.day != today {
		if goesOn, err := l.dayContinues(ctx, b.day, today); err != nil || goesOn {
			return err
		}
		former := b.day
		rev, err := l.cfg.Store.Put(ctx, dayKey, []byte(today), b.dayRev)
		if errors.Is(err, storage.ErrConflict) {
			if b.day, b.dayRev, err = b.readDay(ctx); err == nil { // another process has begun it
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("begin %s: %w", today, err)
		}
		b.day, b.dayRev = today, rev
		if former > today {
			l.log.Warn("the accounts' day was far ahead of the clock and is reset: was the clock wrong?", "accounts", former, "clock", today)
		} else if err := l.deleteOldRecords(ctx, former); err != nil {
			l.log.Warn("old accounts cannot be deleted", "err", err)
		}
	}
	return nil
}

const (
	// nearDays is how far the clocks and time zones of processes may be apart.
	nearDays = 2
	// farDays is how far ahead a day may be that continues although a day before it was unused.
	farDays = 31
)

// dayContinues reports whether a stored day continues although the clock shows an earlier one. A day
// more than [nearDays] ahead continues if the days in between were in use: a clock that was ahead once
// leaves them unused. Up to [farDays] ahead it also continues if no other days are stored.
func (l *Ledger) dayContinues(ctx context.Context, day, today string) (bool, error) {
	newest, err := time.Parse(time.DateOnly, day)
	clock, wrong := time.Parse(time.DateOnly, today)
	near := clock.AddDate(0, 0, nearDays)
	switch {
	case err != nil || wrong != nil || newest.Before(clock):
		return false, nil
	case !newest.After(near) || l.acceptedDays == day+today:
		return true, nil
	}
	next := newest.AddDate(0, 0, -1)
	used := true
	for ; used && !next.Before(near); next = next.AddDate(0, 0, -1) {
		if used, err = l.hasUsage(ctx, next); err != nil {
			return false, err
		}
	}
	if !used && newest.After(clock.AddDate(0, 0, farDays)) {
		return false, nil
	}
	for next = near; !used && next.After(clock.AddDate(0, 0, -keepNamedDays)); next = next.AddDate(0, 0, -1) {
		other, err := l.hasUsage(ctx, next)
		if err != nil || other {
			return false, err
		}
	}
	l.acceptedDays = day + today
	return true, nil
}

// hasUsage reports whether anything was charged on a day.
func (l *Ledger) hasUsage(ctx context.Context, day time.Time) (bool, error) {
	_, err := l.cfg.Store.Get(ctx, keyOf(day.Format(time.DateOnly), Account{Kind: KindTotal}))
	if err == nil || errors.Is(err, storage.ErrNotFound) {
		return err == nil, nil
	}
	return false, fmt.Errorf("read the total of a day: %w", err)
}

// deleteOldRecords deletes old records, which sort by day. Their age is relative to the day that has
// ended, so that a clock that jumps ahead deletes nothing.
func (l *Ledger) deleteOldRecords(ctx context.Context, former string) error {
	day, err := time.Parse(time.DateOnly, former)
	if err != nil {
		return nil // there was none
	}
	named := day.AddDate(0, 0, -keepNamedDays).Format(time.DateOnly)
	oldest := day.AddDate(0, 0, -KeepDays).Format(time.DateOnly)
	for entry, err := range l.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return err
		}
		period, rest, _ := strings.Cut(strings.TrimPrefix(entry.Key, prefix), "/")
		kind, _, _ := strings.Cut(rest, "/")
		old := period < oldest || period < named && (Kind(kind) == KindUser || Kind(kind) == KindChat)
		if strings.HasPrefix(entry.Key, chatTotalPrefix) {
			var total record
			old = json.Unmarshal(entry.Value, &total) == nil && total.LastDay < oldest
		}
		if strings.HasPrefix(entry.Key, chargesKey) {
			var c charges
			old = json.Unmarshal(entry.Value, &c) == nil && len(c.Sums) == 0 && c.Day < former
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
