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
	// DefaultHold is how long an unsettled reservation is valid.
	DefaultHold = 20 * time.Minute
)

// Config configures a [Ledger].
type Config struct {
	// Store stores the accounts.
	Store storage.Store
	// Limits returns the current limits. Nil means none.
	Limits func(ctx context.Context) (Limits, error)
	// Prices are the models' prices; calls of others count only in tokens.
	Prices Table
	// Location returns the time zone of days. Nil means UTC.
	Location func() *time.Location
	// ReplyTokens is what is reserved for a reply. 0 means [DefaultReplyTokens].
	ReplyTokens int64
	// Exclusive says that no other process uses the store: reservations of others belong to dead
	// processes, and do not count.
	Exclusive bool
	// GroupOf returns the group of a tool, empty for an unknown one. If nil, there are no accounts
	// of groups.
	GroupOf func(tool string) string
	// Hold is how long an unsettled reservation is valid, which must be longer than a call may
	// take. 0 means [DefaultHold].
	Hold time.Duration
	// Damaged moves a record that cannot be decoded aside, and notifies administrators, before the
	// record is replaced. If nil, it is only logged.
	Damaged func(ctx context.Context, entry storage.Entry) error
	// Logger may be nil.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// attempt is the writing of patient operations. All of them are tried again under the same
// number until it is certain that they are stored, so that they are stored once.
type attempt struct {
	batch  []*operation
	number int64
	days   []string // of the accounts that it may have changed
	adds   bool     // add charges to the accounts, as every batch that reads them does
	tries  int      // since the ledger was closed
}

// Ledger keeps the accounts. It may be used concurrently. While there is something to write it
// has one goroutine, for which [Ledger.Close] waits.
type Ledger struct {
	cfg  Config
	log  *slog.Logger
	self string // prefix of the ids of its reservations

	ending chan struct{} // closed by Close
	hurry  chan struct{} // signals an operation that is not lazy

	mu      sync.Mutex // guards what follows
	queue   []*operation
	patient int // operations that are tried until they are stored
	writing bool
	rush    context.CancelFunc // makes the store write waiting lazy operations
	closed  bool
	idle    sync.Cond // on mu: writing has become false

	// The rest belongs to the goroutine that writes. book is nil if it has to be read. contended
	// says that other processes write as well.
	book      *accountBook
	contended bool
	number    int64   // of the newest write
	owed      attempt // a write that failed, or whose outcome is unknown
	judged    string  // the days for which the store's day was accepted
	// charges have to be added to the accounts; rounds counts since when there are any, and looks
	// since when those of other processes were searched: foreign are those found.
	charges       []charges
	rounds, looks int
	looked        bool
	foreign       map[string]storage.Revision

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
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Damaged == nil {
		cfg.Damaged = func(_ context.Context, entry storage.Entry) error {
			cfg.Logger.Error("a record does not decode and begins anew", "key", entry.Key)
			return nil
		}
	}
	l := &Ledger{cfg: cfg, log: cfg.Logger, ending: make(chan struct{}), hurry: make(chan struct{}, 1), self: rand.Text(), rush: func() {}}
	l.idle.L = &l.mu
	return l, nil
}

// Close writes the rest and ends the ledger; call it before the store is closed. What the store
// does not accept in a few tries is lost, and logged.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.ending)
		l.rush()
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
	// decide reads the accounts, may change them, and reports whether it did. After an error it has
	// changed nothing. It is called again if another process was faster.
	decide func(ctx context.Context, b *accountBook, now time.Time) (changed bool, err error)
	// patient operations are tried until the store accepts them.
	patient bool
	// lazy ones are written a little later, as charges. They have no other decision.
	lazy func(*charges)
	used Sum // the usage, for the log if it is lost
	done chan error
}

// maxPatient bounds the operations that wait for a failing store. Beyond it no call is admitted
// that would have to be charged.
const maxPatient = 10_000

// errTooMuchOwed is returned if no more usage can be buffered.
var errTooMuchOwed = fmt.Errorf("budget: the store has not taken what %d calls used, so no model is asked", maxPatient)

// full returns [errTooMuchOwed] if no more can be charged.
func (l *Ledger) full() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.patient >= maxPatient {
		return errTooMuchOwed
	}
	return nil
}

// do queues an operation. Operations that are queued together are written together.
func (l *Ledger) do(how operation, decide func(ctx context.Context, b *accountBook, now time.Time) (bool, error)) <-chan error {
	op := &how
	op.decide, op.done = decide, make(chan error, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		op.done <- errClosed
		return op.done
	}
	l.queue = append(l.queue, op)
	if op.patient {
		l.patient++
	}
	if op.lazy == nil {
		l.rush()
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

// lazyTime is the delay of lazy operations; the store may delay them again as long to join them
// with another write.
const lazyTime = 20 * time.Millisecond

// turnTime is the pause of a process after a write, while others write too.
const turnTime = 20 * time.Millisecond

func (l *Ledger) write() {
	pauses := retry.New(tryAgain, longestPause)
	for {
		if l.contended {
			l.pause(turnTime, nil) // give other processes their turn
		}
		l.pause(lazyTime, l.hurry)
		l.mu.Lock()
		batch := l.queue
		l.queue = nil
		if len(batch)+len(l.owed.batch)+len(l.charges) == 0 || l.closed && len(batch)+len(l.owed.batch) == 0 && l.rounds > addAfter {
			l.writing = false
			l.idle.Broadcast()
			l.mu.Unlock()
			return
		}
		adds := l.closed || l.crowded() || l.rounds >= addAfter
		l.mu.Unlock()
		if len(l.charges) > 0 {
			l.rounds++
			l.looks++
		}
		if len(batch)+len(l.owed.batch) == 0 && !adds {
			continue
		}
		if l.writeOwed(batch, adds) {
			pauses.Reset()
			continue
		}
		select {
		case <-l.ending:
			_ = retry.Wait(context.Background(), tryAgain) // cannot be cancelled
		default:
			l.pause(pauses.Next(0), l.hurry)
		}
	}
}

// Retries after an error of the store.
const (
	tryAgain     = 200 * time.Millisecond
	longestPause = 5 * time.Second
	writeTime    = 30 * time.Second
	lastTries    = 5 // once the ledger is closed
	lastTime     = 5 * time.Second
)

// writeOwed tries what is owed, then a batch, and reports whether nothing is owed afterwards. With
// adds it adds the charges to the accounts.
func (l *Ledger) writeOwed(batch []*operation, adds bool) bool {
	if len(l.owed.batch) > 0 {
		if err := l.try(l.owed); err != nil {
			l.putOff(batch, err)
			return false
		}
		l.log.Info("usage that could not be written is written")
		l.owed = attempt{}
	}
	if len(batch) == 0 && (!adds || len(l.charges) == 0) {
		return true
	}
	l.number++
	next := attempt{batch: batch, number: l.number, adds: adds}
	err := l.try(next)
	return err == nil || len(l.owed.batch) == 0
}

// putOff makes the patient operations of a batch wait until what is owed is written, and fails
// the others.
func (l *Ledger) putOff(batch []*operation, err error) {
	var waiting []*operation
	lost := Sum{}
	for _, op := range batch {
		if op.patient && len(l.owed.batch) > 0 {
			waiting = append(waiting, op)
			continue
		}
		lost = lost.plus(op.used)
		l.finish(op, err)
	}
	l.tellLost(lost, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(waiting, l.queue...)
}

func (l *Ledger) tellLost(lost Sum, err error) {
	if lost.Calls+lost.Searches > 0 {
		l.log.Error("usage could not be written and is lost", "calls", lost.Calls, "searches", lost.Searches, "tokens", lost.Tokens(), "money", lost.Money.String(), "err", err)
	}
}

// try writes a batch. After an error its patient operations are owed, unless the ledger is
// closed and has tried long enough.
func (l *Ledger) try(a attempt) error {
	limit := writeTime
	select {
	case <-l.ending:
		limit = lastTime
		a.tries++
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit) // the write belongs to no caller
	defer cancel()
	failed, err := l.commit(ctx, &a)
	if err == nil {
		return nil
	}
	first := len(l.owed.batch) == 0
	l.owed = attempt{number: a.number, days: a.days, tries: a.tries, adds: a.adds}
	if l.rounds = 0; a.tries > 0 {
		l.rounds = addAfter + 1 // it is closed: the rest is added at the next start
	}
	lost := Sum{}
	for _, op := range failed {
		if op.patient && a.tries < lastTries {
			l.owed.batch = append(l.owed.batch, op)
			continue
		}
		lost = lost.plus(op.used)
		l.finish(op, err)
	}
	l.tellLost(lost, err)
	if first && len(l.owed.batch) > 0 {
		l.log.Warn("usage cannot be written, trying again until it is", "calls", len(l.owed.batch), "err", err)
	}
	return err
}

// finish reports the result of an operation.
func (l *Ledger) finish(op *operation, err error) {
	if op.patient {
		l.mu.Lock()
		l.patient--
		l.mu.Unlock()
	}
	op.done <- err
}

// pause waits for d, or until hurry or the end of the ledger.
func (l *Ledger) pause(d time.Duration, hurry <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-hurry:
	case <-l.ending:
	}
}

// commit decides a batch and writes the changes in one write. If the store does not accept it,
// it returns the operations that were to be written; the others are done.
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

// decide decides and writes a batch, again if another process was faster. After an error
// everything to be written counts as changed.
func (l *Ledger) decide(ctx context.Context, a *attempt, results []error, changed []bool) error { //nolint:cyclop // One batch from reading to writing; each branch is one outcome of it.
	trouble := func(err error) error {
		for i := range changed {
			changed[i] = true // nothing was decided
		}
		return err
	}
	accounts := a.adds
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
		b, err := l.open(ctx, now)
		if err != nil {
			return trouble(err)
		}
		b.used = make(map[string]bool)
		if stored, err := l.stored(ctx, a, b); stored || err != nil {
			return err // the store had accepted it, although it returned an error
		}
		var also []storage.Op
		if accounts {
			if also, err = l.addUp(ctx, b); err != nil {
				return trouble(err)
			}
		}
		added := charges{Day: b.day, key: l.chargesOf(a.number)}
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
			b.sign(l.self, a.number, now)
		}
		if b.err != nil {
			return trouble(b.err)
		}
		if len(added.Sums) > 0 {
			op, err := added.put()
			if err != nil {
				return trouble(err)
			}
			also = append(also, op)
		}
		if fresh || !accounts || !l.stale(b, changed) {
			if !slices.Contains(a.days, b.day) {
				a.days = append(a.days, b.day)
			}
			added.rev, err = l.store(ctx, a, b, also)
			if err == nil {
				l.note(accounts, added)
				return nil
			}
			if !errors.Is(err, storage.ErrConflict) {
				return err
			}
			l.contended = accounts
			if err := l.recall(ctx); err != nil {
				return trouble(err)
			}
		}
		if _, err := b.reread(ctx, slices.Collect(maps.Keys(b.used))); err != nil {
			return trouble(err)
		}
	}
}

// stored reports whether an earlier try of an attempt was stored.
func (l *Ledger) stored(ctx context.Context, a *attempt, b *accountBook) (bool, error) {
	if len(a.days) == 0 {
		return false, nil
	}
	c, err := l.readCharges(ctx, l.chargesOf(a.number))
	if err != nil {
		return false, err
	}
	if len(c.Sums) > 0 {
		l.charges = append(l.charges, c)
	}
	return c.key != "" || slices.ContainsFunc(a.days, func(day string) bool { return b.total(ctx, day).Marks[l.self].Number == a.number }), nil
}

// note updates the charges after a write.
func (l *Ledger) note(added bool, fresh charges) {
	if added {
		l.charges, l.rounds = nil, 0
	}
	if len(fresh.Sums) > 0 {
		l.charges = append(l.charges, fresh)
	}
}

// stale reports whether something was decided, and is not written, on old reads: a write would
// detect another process's changes.
func (l *Ledger) stale(b *accountBook, changed []bool) bool {
	return !l.cfg.Exclusive && slices.Contains(changed, false) && slices.Contains(slices.Collect(maps.Values(b.used)), true)
}

// refreshShared reads again what every process writes, while others do: a decision on old records
// would be repeated.
func (l *Ledger) refreshShared(ctx context.Context) (err error) {
	if l.contended && l.book != nil {
		l.contended, err = l.book.reread(ctx, l.book.common())
	}
	return err
}

// store writes a batch's changes of the accounts, with other operations.
func (l *Ledger) store(ctx context.Context, a *attempt, b *accountBook, also []storage.Op) (storage.Revision, error) {
	ops, err := b.changes()
	if err != nil || len(ops)+len(also) == 0 {
		return 0, err
	}
	if !l.cfg.Exclusive && len(ops) > 0 {
		ops = append(ops, b.checks()...)
	}
	ops = append(ops, also...)
	var rev storage.Revision
	if due := l.due(a); due == nil {
		rev, err = l.cfg.Store.Write(ctx, ops...)
	} else {
		rev, err = storage.WriteDeferred(ctx, l.cfg.Store, due, ops...)
	}
	if err != nil {
		return 0, fmt.Errorf("write the accounts: %w", err)
	}
	b.written(rev)
	return rev, nil
}

// due returns a channel that is closed when a batch of lazy operations has to be written; nil
// for other batches. It is closed at once if an operation arrives that is not lazy.
func (l *Ledger) due(a *attempt) <-chan struct{} {
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
	l.rush()
	due, cancel := context.WithTimeout(context.Background(), lazyTime) // of no caller
	l.rush = cancel
	return due.Done()
}

// open returns the accounts of today.
func (l *Ledger) open(ctx context.Context, now time.Time) (*accountBook, error) {
	if l.book == nil || len(l.book.records) > maxRecords {
		b := &accountBook{store: l.cfg.Store, records: map[string]*record{}, longest: l.cfg.Hold + 24*time.Hour, damaged: l.cfg.Damaged}
		var err error
		if b.day, b.begun, err = b.readDay(ctx); err != nil {
			return nil, err
		}
		if l.cfg.Exclusive {
			b.own = l.self // those of a dead process do not count
		}
		l.book = b
	}
	if !l.looked || !l.cfg.Exclusive && l.looks >= lookAfter {
		l.looks = 0
		if err := l.adopt(ctx); err != nil {
			return nil, err
		}
	}
	return l.book, l.begin(ctx, l.book, now.In(l.cfg.Location()).Format(time.DateOnly))
}

// begin begins a new day. A day does not begin twice: if the clock or the time zone goes back,
// or another process's clock is ahead, the newer day continues, unless it is so far ahead that a
// clock must have been wrong.
func (l *Ledger) begin(ctx context.Context, b *accountBook, today string) error {
	for b.day != today {
		if goesOn, err := l.dayContinues(ctx, b.day, today); err != nil || goesOn {
			return err
		}
		former := b.day
		rev, err := l.cfg.Store.Put(ctx, newestKey, []byte(today), b.begun)
		if errors.Is(err, storage.ErrConflict) {
			if b.day, b.begun, err = b.readDay(ctx); err == nil { // another process has begun it
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("begin %s: %w", today, err)
		}
		b.day, b.begun = today, rev
		if former > today {
			l.log.Warn("the accounts were of a day that lies far ahead, and go on with that of the clock: was the clock wrong?", "accounts", former, "clock", today)
		} else if err := l.forget(ctx, former); err != nil {
			l.log.Warn("accounts that are too old cannot be removed", "err", err)
		}
	}
	return nil
}

const (
	// nearDays is how far the clocks and time zones of processes may be apart.
	nearDays = 2
	// farDays is from how far ahead no day is accepted, whatever else is stored.
	farDays = 31
)

// dayContinues reports whether a stored day continues although the clock says otherwise. One that is
// more than [nearDays] ahead does if the days before it were in use, or there are no others: a
// clock that was ahead once leaves a day with nothing before it.
func (l *Ledger) dayContinues(ctx context.Context, day, today string) (bool, error) {
	newest, err := time.Parse(time.DateOnly, day)
	clock, wrong := time.Parse(time.DateOnly, today)
	near := clock.AddDate(0, 0, nearDays)
	switch {
	case err != nil || wrong != nil || newest.Before(clock):
		return false, nil
	case !newest.After(near) || l.judged == day+today:
		return true, nil
	}
	next := newest.AddDate(0, 0, -1)
	used := true
	for ; used && !next.Before(near); next = next.AddDate(0, 0, -1) {
		if used, err = l.used(ctx, next); err != nil {
			return false, err
		}
	}
	if !used && newest.After(clock.AddDate(0, 0, farDays)) {
		return false, nil
	}
	for next = near; !used && next.After(clock.AddDate(0, 0, -keepNamedDays)); next = next.AddDate(0, 0, -1) {
		other, err := l.used(ctx, next)
		if err != nil || other {
			return false, err
		}
	}
	l.judged = day + today
	return true, nil
}

// used reports whether anything was charged on a day.
func (l *Ledger) used(ctx context.Context, day time.Time) (bool, error) {
	_, err := l.cfg.Store.Get(ctx, keyOf(day.Format(time.DateOnly), Account{Kind: KindTotal}))
	if err == nil || errors.Is(err, storage.ErrNotFound) {
		return err == nil, nil
	}
	return false, fmt.Errorf("look for the accounts of a day: %w", err)
}

// forget deletes old records, which sort by day. Their age is relative to the day that has
// ended, so that a clock that jumps ahead deletes nothing.
func (l *Ledger) forget(ctx context.Context, former string) error {
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
		if strings.HasPrefix(entry.Key, everKey) {
			var total record
			old = json.Unmarshal(entry.Value, &total) == nil && total.Last < oldest
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
