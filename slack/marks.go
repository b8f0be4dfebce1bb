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

// doesSharedWork reports whether this process does the work that one process does for all.
func (p *platform) doesSharedWork() bool { return p.isLeader == nil || p.isLeader() }

// loadMarks loads the state that the last Run saved, if it can be read.
func (r *receiver) loadMarks(ctx context.Context) {
	if err := r.progress.Load(ctx); err != nil {
		r.log.Error("cannot load the cursor yet: messages missed before this start are fetched later", "err", err)
		return
	}
	for chat, at := range r.progress.ThreadTimes() {
		r.threads.Put(chat, thread{joined: true}, joinedAge)
		// A process that was killed has cleared no status. If other processes serve the bot, the status
		// may be theirs, and Slack drops it soon.
		if r.isLeader == nil && r.api.clock.Now().Sub(at) < statusAge {
			r.statuses.AddStale(chat)
		}
	}
	if len(r.progress.Postponed()) > 0 {
		r.progress.WakeUp()
	}
}

func (r *receiver) saveMarks(ctx context.Context) {
	if err := r.progress.Save(ctx); err != nil {
		r.log.Warn("cannot save the cursor: more messages than needed may be fetched after a restart", "err", err)
	}
}

// runUpkeep regularly saves the marks, clears stale statuses, takes over the work of other processes, and
// deletes old records. Without sockets, as with posted events, a running program counts as a sign of
// life.
func (r *receiver) runUpkeep(ctx context.Context, sockets bool) {
	tick, seldom := time.NewTicker(saveInterval), time.NewTicker(pruneInterval)
	defer tick.Stop()
	defer seldom.Stop()
	for {
		r.clearStatuses(ctx, true)
		select {
		case <-ctx.Done():
			return
		case <-seldom.C:
			r.prune(ctx)
		case <-tick.C:
			if !sockets {
				r.progress.RecordAlive()
			}
			r.saveMarks(ctx)
			r.takeOver(ctx)
		}
	}
}

// takeOver takes over the unfinished work of other processes if this process is the leader.
func (r *receiver) takeOver(ctx context.Context) {
	if r.isLeader == nil || !r.doesSharedWork() {
		return
	}
	if err := r.progress.LoadPostponed(ctx); err != nil {
		r.log.Warn("cannot load postponed messages", "err", err)
	}
	if since, _ := r.progress.Gap(); !since.IsZero() || len(r.progress.Postponed()) > 0 {
		r.progress.WakeUp()
	}
}

// prune deletes old records.
func (r *receiver) prune(ctx context.Context) {
	if !r.doesSharedWork() {
		return
	}
	if err := errors.Join(r.invitations.Prune(ctx), r.progress.Prune(ctx)); err != nil {
		r.log.Warn("expired records are not deleted yet", "err", err)
	}
}
