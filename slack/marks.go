package slack

import (
	"context"
	"errors"
	"time"
)

const (
	// saveInterval is how often the marks are saved.
	saveInterval = 30 * time.Second
	// pruneInterval is how often what is over is removed from the store.
	pruneInterval = time.Hour
)

// leading reports whether this process does what one of them is enough for.
func (p *Platform) leading() bool { return p.leads == nil || p.leads() }

// loadMarks takes up where the last Run ended, if that can be read.
func (r *receiver) loadMarks(ctx context.Context) {
	if err := r.reach.Load(ctx); err != nil {
		r.log.Error("not known since when messages are missing: those of the time without a connection are not fetched", "err", err)
		return
	}
	for chat, at := range r.reach.All() {
		r.threads.Put(chat, thread{joined: true}, joinedAge)
		// A process that was killed has cleared nothing. Where there are others, it may be
		// theirs; Slack drops it soon.
		if r.leads == nil && r.api.clock.Now().Sub(at) < statusAge {
			r.statuses.Remember(chat)
		}
	}
	if len(r.reach.Debts()) > 0 {
		r.reach.Ring()
	}
}

func (r *receiver) saveMarks(ctx context.Context) {
	if err := r.reach.Save(ctx); err != nil {
		r.log.Warn("not saved up to when messages have arrived: more than needed may be fetched after a restart", "err", err)
	}
}

// upkeep saves the marks now and then, and clears statuses that should not stand. Where no
// socket shows signs of life, as with posted events, that the program runs is one.
func (r *receiver) upkeep(ctx context.Context, sockets bool) {
	tick, seldom := time.NewTicker(saveInterval), time.NewTicker(pruneInterval)
	defer tick.Stop()
	defer seldom.Stop()
	for {
		r.sweep(ctx, true)
		select {
		case <-ctx.Done():
			return
		case <-seldom.C:
			r.prune(ctx)
		case <-tick.C:
			if !sockets {
				r.reach.Sign()
			}
			r.saveMarks(ctx)
			r.takeOver(ctx)
		}
	}
}

// takeOver sees to what other processes have left to do, in the one that leads.
func (r *receiver) takeOver(ctx context.Context) {
	if r.leads == nil || !r.leading() {
		return
	}
	if err := r.reach.LoadDebts(ctx); err != nil {
		r.log.Warn("not known what is still to be looked at", "err", err)
	}
	if since, _ := r.reach.Gap(); !since.IsZero() || len(r.reach.Debts()) > 0 {
		r.reach.Ring()
	}
}

// prune removes from the store what is over.
func (r *receiver) prune(ctx context.Context) {
	if !r.leading() {
		return
	}
	if err := errors.Join(r.responses.Prune(ctx), r.reach.Prune(ctx)); err != nil {
		r.log.Warn("what is over stays in the store until the next time", "err", err)
	}
}
