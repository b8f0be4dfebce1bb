package budget

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// defaultReplyTokens is the assumed size of a reply.
const defaultReplyTokens = 4000

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
	// ReplyTokens is the number of tokens to reserve for a reply. 0 means [defaultReplyTokens].
	ReplyTokens int64
	// GroupOf returns the group of a tool, empty for an unknown one. If nil, there are no accounts
	// of groups.
	GroupOf func(tool string) string
	// OnDamaged keeps a copy of a record that cannot be decoded, before the ledger replaces or deletes
	// the record. If nil, the error is only logged.
	OnDamaged func(ctx context.Context, entry storage.Entry) error
	// Logger may be nil.
	Logger *slog.Logger
	// Now is the clock. Required.
	Now func() time.Time
}

// Ledger keeps the accounts. It may be used concurrently. While there is something to add to the sums, it
// has one goroutine, for which [Ledger.Close] waits.
type Ledger struct {
	cfg  Config
	log  *slog.Logger
	self string // begins the keys of its charges

	admitting chan struct{} // holds a token while a call is admitted, so that the next one sees it
	ending    chan struct{} // closed by Close
	sweeps    sync.WaitGroup

	mu    sync.Mutex
	calls map[string]*call // running ones, and those whose charges may not be stored, by key
	count int              // of all calls
	owed  []*call          // those whose charges the store did not take; they are tried again
	// unadded is set if there are stored charges to add to the sums, sweeping while a goroutine does that.
	unadded, sweeping, closed bool

	searched time.Time // when that goroutine has looked for charges of other processes

	warnedModels sync.Map // models without a price
}

// call is a paid call: while it runs a reservation, then a charge that may not be stored.
type call struct {
	key      string
	payer    Payer
	reserved Limit
	charge   charge // without sums while the call runs
}

// Open checks the configuration and makes a ledger. It reads nothing from the store.
func Open(cfg Config) (*Ledger, error) {
	if cfg.Store == nil || cfg.Now == nil {
		return nil, errors.New("budget: Store and Now are required")
	}
	if cfg.ReplyTokens < 0 {
		return nil, errors.New("budget: a bound is negative")
	}
	if err := cfg.Prices.Check(); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	cfg.ReplyTokens = cmp.Or(cfg.ReplyTokens, defaultReplyTokens)
	if cfg.Limits == nil {
		cfg.Limits = func(context.Context) (Limits, error) { return Limits{}, nil }
	}
	if cfg.Location == nil {
		cfg.Location = func() *time.Location { return time.UTC }
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.OnDamaged == nil {
		cfg.OnDamaged = func(_ context.Context, entry storage.Entry) error {
			cfg.Logger.Error("a record does not decode and begins anew", "key", entry.Key)
			return nil
		}
	}
	return &Ledger{
		cfg: cfg, log: cfg.Logger, self: chargesPrefix + rand.Text() + "/", admitting: make(chan struct{}, 1), ending: make(chan struct{}),
		calls: map[string]*call{}, searched: cfg.Now(),
	}, nil
}

// Close stores what is left and closes the ledger. Call it before the store is closed. Charges that the
// store does not take in a few tries are logged and lost.
func (l *Ledger) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.ending)
	}
	l.mu.Unlock()
	l.sweeps.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := Usage{}
	for _, c := range l.owed {
		lost = lost.plus(c.charge.Sums[0].Sum)
	}
	if len(l.owed) > 0 {
		l.log.Error("usage could not be written and is lost", "calls", lost.Calls, "searches", lost.Searches, "tokens", lost.Tokens(), "money", lost.Money.String())
	}
	l.owed = nil
	return nil
}

// errClosed is returned by calls after Close.
var errClosed = errors.New("budget: closed")

// maxOwed bounds the charges that a failing store has not taken. Beyond it, no call is admitted.
const maxOwed = 1000

// today returns the current day.
func (l *Ledger) today() string { return l.cfg.Now().In(l.cfg.Location()).Format(time.DateOnly) }

// limitsOf returns the limits of a payer.
func (l *Ledger) limitsOf(ctx context.Context, payer Payer) (Limits, error) {
	limits, err := l.cfg.Limits(ctx)
	if err != nil {
		return Limits{}, fmt.Errorf("budget: read the limits: %w", err)
	}
	limits.User = limits.User.lowerOf(payer.Limit)
	return limits, nil
}

// admit reserves the possible cost of a call. The error of a call for which there is no budget left wraps a
// *[Refusal].
func (l *Ledger) admit(ctx context.Context, limits Limits, payer Payer, possible Limit) (*call, error) {
	select {
	case l.admitting <- struct{}{}:
		defer func() { <-l.admitting }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("budget: %w", context.Cause(ctx))
	}
	if limits != (Limits{}) {
		refusal, err := l.check(ctx, limits, payer)
		if err != nil {
			return nil, err
		}
		if refusal != nil {
			l.log.Info("no budget left", "account", refusal.Account.key(), "user", payer.User, "chat", payer.Chat)
			return nil, &agent.ModelError{Kind: agent.KindBudget, Notice: refusal.UserText(), Err: refusal}
		}
	}
	l.mu.Lock()
	closed, owed := l.closed, len(l.owed)
	l.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if owed >= maxOwed {
		return nil, fmt.Errorf("budget: the usage of %d calls is not stored yet, so no model is called", owed)
	}
	return l.begin(payer, possible), nil
}

// begin records a call and its reservation.
func (l *Ledger) begin(payer Payer, possible Limit) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	c := &call{key: l.self + strconv.Itoa(l.count), payer: payer, reserved: possible}
	l.calls[c.key] = c
	return c
}

// check returns a refusal if one of the payer's accounts has reached its limit, and nil otherwise.
func (l *Ledger) check(ctx context.Context, limits Limits, payer Payer) (*Refusal, error) {
	day := l.today()
	all, err := l.current(ctx, day, payer)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds() {
		a := payer.account(k)
		spent := all[keyOf(day, a)]
		limit := spent.raise(limits.forKind(k))
		if limit == (Limit{}) {
			continue
		}
		held := l.reserved(a)
		tokens := limit.Tokens > 0 && spent.Tokens()+held.Tokens >= limit.Tokens
		money := limit.Money > 0 && spent.Money+held.Money >= limit.Money
		if tokens || money {
			return &Refusal{
				Account: a, Spent: spent.Usage, Limit: limit, Base: limits.forKind(k), IsMoney: money, Until: l.endOf(k),
				PartlyReserved: money && spent.Money < limit.Money || !money && spent.Tokens() < limit.Tokens,
			}, nil
		}
	}
	return nil, nil
}

// reserved returns what running calls may cost an account.
func (l *Ledger) reserved(a Account) (sum Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if len(c.charge.Sums) == 0 && c.payer.account(a.Kind) == a {
			sum.Tokens += c.reserved.Tokens
			sum.Money += c.reserved.Money
		}
	}
	return sum
}

// cancel ends the reservation of a call that costs nothing.
func (l *Ledger) cancel(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, c.key)
}

// settle replaces the reservation of a call by its charge on a day. The shares are charged to accounts of
// their own, in addition to the payer's. The charge is to be stored by the caller.
func (l *Ledger) settle(c *call, day string, used Usage, shares ...share) {
	its := charge{Day: day, Time: l.cfg.Now()}
	for _, k := range kinds() {
		its.Sums = append(its.Sums, share{c.payer.account(k), used})
	}
	its.Sums = append(its.Sums, shares...)
	l.mu.Lock()
	defer l.mu.Unlock()
	c.charge = its
}

const writeTimeout = 5 * time.Second

// store stores charges by themselves. Those that the store does not take are tried again later.
func (l *Ledger) store(ctx context.Context, calls ...*call) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	for i, c := range calls {
		_, err := l.cfg.Store.Write(ctx, c.op())
		if err != nil && !errors.Is(err, storage.ErrConflict) { // in a conflict, a write that failed had taken effect
			l.mu.Lock()
			defer l.mu.Unlock()
			l.owed = append(l.owed, calls[i:]...)
			l.wake()
			return fmt.Errorf("budget: store a charge: %w", err)
		}
		l.confirm(c)
	}
	return nil
}

// confirm records that charges are stored.
func (l *Ledger) confirm(calls ...*call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range calls {
		delete(l.calls, c.key)
		l.unadded = true
		l.wake()
	}
}

// wake starts the goroutine that adds charges to the sums, unless it runs. The caller holds mu.
func (l *Ledger) wake() {
	if !l.sweeping && !l.closed {
		l.sweeping = true
		l.sweeps.Go(l.sweepLoop)
	}
}

// Pauses before charges are added to the sums, and before what failed is tried again.
const (
	sweepPause    = time.Second
	maxSweepPause = 5 * time.Second
	sweepTimeout  = 30 * time.Second
	closeTries    = 5 // after the ledger is closed
	closePause    = 200 * time.Millisecond
)

// sweepLoop sweeps until nothing is left.
func (l *Ledger) sweepLoop() {
	pauses, failing := retry.New(sweepPause, maxSweepPause), false
	for tries := 0; ; {
		timer := time.NewTimer(pauses.Next(0))
		select {
		case <-timer.C:
		case <-l.ending:
			timer.Stop()
			if tries++; tries > 1 {
				_ = retry.Wait(context.Background(), closePause) // cannot be cancelled
			}
		}
		err := l.sweep()
		if err == nil {
			pauses.Reset()
		} else if !failing {
			l.log.Warn("usage cannot be written now", "err", err)
		}
		failing = err != nil
		l.mu.Lock()
		if err == nil && len(l.owed) == 0 && !l.unadded || tries == closeTries {
			l.sweeping = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}

// sweep stores the charges that the store did not take before, and adds all to the sums.
func (l *Ledger) sweep() error {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTimeout)
	defer cancel()
	l.mu.Lock()
	owed := l.owed
	l.owed = nil
	l.mu.Unlock()
	if err := l.store(ctx, owed...); err != nil {
		return err
	}
	l.mu.Lock()
	l.unadded = false
	l.mu.Unlock()
	now := l.cfg.Now()
	if now.Sub(l.searched).Abs() < foreignAge {
		return l.fold(ctx, l.self)
	}
	err := l.fold(ctx, chargesPrefix)
	if err == nil {
		l.searched = now
	}
	return err
}

// unconfirmed returns the calls with charges that may not be stored, by key.
func (l *Ledger) unconfirmed() map[string]charge {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]charge)
	for key, c := range l.calls {
		if len(c.charge.Sums) > 0 {
			all[key] = c.charge
		}
	}
	return all
}

// TurnCharges are the charges of a turn's calls, which are to be stored with the messages that they paid
// for. It implements conversation.Charges.
type TurnCharges struct {
	ledger *Ledger
	mu     sync.Mutex
	calls  []*call
}

// NewTurn returns the charges of a turn.
func (l *Ledger) NewTurn() *TurnCharges { return &TurnCharges{ledger: l} }

// Take implements conversation.Charges.
func (t *TurnCharges) Take() (ops []storage.Op, done func(err error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.calls
	t.calls = nil
	for _, c := range taken {
		ops = append(ops, c.op())
	}
	return ops, func(err error) {
		switch {
		case err == nil:
			t.ledger.confirm(taken...)
		case errors.Is(err, storage.ErrConflict): // nothing is written
			t.mu.Lock()
			defer t.mu.Unlock()
			t.calls = slices.Concat(taken, t.calls)
		default:
			_ = t.ledger.store(context.Background(), taken...) // it logs the error
		}
	}
}

// Flush implements conversation.Charges.
func (t *TurnCharges) Flush() {
	_, done := t.Take()
	done(errUnstored)
}

// errUnstored says that no message is stored with some charges.
var errUnstored = errors.New("budget: no message")
