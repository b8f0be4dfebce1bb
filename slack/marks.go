package slack

import (
	"context"
	"errors"
	"time"
)

const (
	// saveInterval is the interval at which the marks are saved.
	saveInterval = 30 * time.Second
	// pruneInterval is the interval at which old records are deleted.
	pruneInterval = time.Hour
)

// leading reports whether this process does the work that one of them does for all.
func (p *Platform) leading() bool { return p.leads == nil || p.leads() }

// loadMarks loads the state in which the last Run ended, if it can be read.
func (r *receiver) loadMarks(ctx context.Context) {
	if err := r.reach.Load(ctx); err != nil {
		r.log.Error("not known since when messages are missing: those of the time without a connection are not fetched", "err", err)
		return
	}
	for chat, at := range r.reach.All() {
		r.threads.Put(chat, thread{joined: true}, joinedAge)
		// A process that was killed has cleared nothing. If there are others, the status may be theirs;
		// Slack drops it soon.
		if r.leads == nil && r.api.clock.Now().Sub(at) < statusAge {
			r.statuses.Remember(chat)
		}
	}
	if len(r.reach.Postponed()) > 0 {
		r.reach.WakeUp()
	}
}

func (r *receiver) saveMarks(ctx context.Context) {
	if err := r.reach.Save(ctx); err != nil {
		r.log.Warn("not saved up to when messages have arrived: more than needed may be fetched after a restart", "err", err)
	}
}

// upkeep saves the marks regularly, and clears stale statuses. Without sockets, as with posted events,
// a running program counts as a sign of life.
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
				r.reach.SignOfLife()
			}
			r.saveMarks(ctx)
			r.takeOver(ctx)
		}
	}
}

// takeOver takes over the unfinished work of other processes, in the leader.
func (r *receiver) takeOver(ctx context.Context) {
	if r.leads == nil || !r.leading() {
		return
	}
	if err := r.reach.LoadPostponed(ctx); err != nil {
		r.log.Warn("not known what is still to be looked at", "err", err)
	}
	if since, _ := r.reach.Gap(); !since.IsZero() || len(r.reach.Postponed()) > 0 {
		r.reach.WakeUp()
	}
}

// prune deletes old records.
func (r *receiver) prune(ctx context.Context) {
	if !r.leading() {
		return
	}
	if err := errors.Join(r.responses.Prune(ctx), r.reach.Prune(ctx)); err != nil {
		r.log.Warn("what is over stays in the store until the next time", "err", err)
	}
}
