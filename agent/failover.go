package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// DefaultOutage is how long a model that failed is asked only after the others.
const DefaultOutage = 30 * time.Second

// maxOutage bounds what a provider can ask for with RetryAfter.
const maxOutage = 15 * time.Minute

// Candidate is one of the models of a [Failover].
type Candidate struct {
	// Name is for the log and for remembering outages: the same model has the same name
	// in every turn.
	Name  string
	Model Model
}

// FailoverConfig is what a [Failover] is made of.
type FailoverConfig struct {
	// Candidates are asked in this order. At least one is needed.
	Candidates []Candidate
	// Outages remembers which of them failed lately, for all turns that share it. Nil
	// means one of its own.
	Outages *Outages
	// Logger is told when another model takes over. Nil discards it.
	Logger *slog.Logger
}

// Failover is a model that asks the next one where one is out of order: not reached, at
// its limit, or refusing the key. What a request does wrong fails everywhere and is
// not tried elsewhere. It may be used concurrently.
type Failover struct {
	candidates []Candidate
	outages    *Outages
	log        *slog.Logger
}

var (
	_ Model        = (*Failover)(nil)
	_ ContextSizer = (*Failover)(nil)
	_ ToolLimiter  = (*Failover)(nil)
	_ Namer        = (*Failover)(nil)
)

// NewFailover makes a failover. It asks nobody.
func NewFailover(cfg FailoverConfig) (*Failover, error) {
	if len(cfg.Candidates) == 0 {
		return nil, errors.New("agent: failover without a model")
	}
	for _, c := range cfg.Candidates {
		if c.Model == nil || c.Name == "" {
			return nil, errors.New("agent: failover with a candidate that has no model or no name")
		}
	}
	f := &Failover{candidates: cfg.Candidates, outages: cfg.Outages, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))}
	if f.outages == nil {
		f.outages = NewOutages(OutagesConfig{})
	}
	return f, nil
}

// ContextTokens is the size of the context of the model that would be asked now.
func (f *Failover) ContextTokens() int {
	if m, ok := f.order()[0].Model.(ContextSizer); ok {
		return m.ContextTokens()
	}
	return 0
}

// MaxTools is the longest tools array that all of the models take.
func (f *Failover) MaxTools() int {
	most := 0
	for _, c := range f.candidates {
		if m, ok := c.Model.(ToolLimiter); ok && m.MaxTools() > 0 && (most == 0 || m.MaxTools() < most) {
			most = m.MaxTools()
		}
	}
	return most
}

// ModelName is the name of the model that would be asked now.
func (f *Failover) ModelName() string {
	if m, ok := f.order()[0].Model.(Namer); ok {
		return m.ModelName()
	}
	return ""
}

// order puts those that failed lately behind the others.
func (f *Failover) order() []Candidate {
	var well, out []Candidate
	for _, c := range f.candidates {
		if f.outages.has(c.Name) {
			out = append(out, c)
		} else {
			well = append(well, c)
		}
	}
	return append(well, out...)
}

// Complete asks one model after another until one replies. A stand-in that calls the
// request wrong (an unknown model, say) is passed over too. What of a reply that broke
// off was given to onDelta is taken back with [Delta].Restart before the next one's. If
// none replies, the error is that of the first with those of the others in its text.
func (f *Failover) Complete(ctx context.Context, req Request, onDelta func(Delta)) (Reply, error) {
	order := f.order()
	shown := false
	var forward func(Delta)
	if onDelta != nil {
		forward = func(d Delta) {
			shown = !d.Restart && (shown || d.Text != "")
			onDelta(d)
		}
	}
	var failures []error
	var first *ModelError
	for i, c := range order {
		if shown {
			forward(Delta{Restart: true})
		}
		reply, err := c.Model.Complete(ctx, req, forward)
		if err == nil {
			f.outages.clear(c.Name)
			return reply, nil
		}
		var failure *ModelError
		if ctx.Err() != nil || !errors.As(err, &failure) {
			return Reply{}, err
		}
		switch {
		case passes(failure.Kind):
			f.outages.add(c.Name, failure.RetryAfter)
		case first == nil || failure.Kind != KindRejected:
			return Reply{}, err
		}
		if first == nil {
			first = failure
		}
		failures = append(failures, fmt.Errorf("%s: %w", c.Name, err))
		if i+1 < len(order) {
			f.log.Warn("another model takes over", "from", c.Name, "to", order[i+1].Name, "kind", failure.Kind, "err", err)
		}
	}
	if len(failures) == 1 {
		return Reply{}, first
	}
	return Reply{}, &ModelError{Kind: first.Kind, Status: first.Status, RetryAfter: first.RetryAfter, Err: errors.Join(failures...)}
}

// passes reports whether a failure may be that of one provider alone.
func passes(kind Kind) bool {
	return kind == KindUnavailable || kind == KindRateLimit || kind == KindAuth
}

// OutagesConfig is what [Outages] are made of.
type OutagesConfig struct {
	// Duration is how long an outage is remembered where the provider does not say. 0
	// means [DefaultOutage].
	Duration time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Outages remembers for a while which models failed. It may be used concurrently.
type Outages struct {
	duration time.Duration
	now      func() time.Time

	mu    sync.Mutex // guards until
	until map[string]time.Time
}

// NewOutages makes an empty memory.
func NewOutages(cfg OutagesConfig) *Outages {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Outages{duration: cmp.Or(cfg.Duration, DefaultOutage), now: cfg.Now, until: map[string]time.Time{}}
}

func (o *Outages) has(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now().Before(o.until[name])
}

// add remembers an outage, and forgets those that are over.
func (o *Outages) add(name string, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	for n, until := range o.until {
		if !now.Before(until) {
			delete(o.until, n)
		}
	}
	o.until[name] = now.Add(min(max(wait, o.duration), maxOutage))
}

func (o *Outages) clear(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.until, name)
}
