package replicas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"oneclaw/storage"
)

// share takes free leases up to a fair share, and releases those above it.
func (l *membership) share(ctx context.Context) {
	fair := l.fairShare()
	own := 0
	var free []string
	for _, name := range l.r.cfg.Leases {
		switch owner := l.leases[name].owner; {
		case l.r.holds(name):
			own++
		case owner == "" || owner == l.self.ID || l.isDead(ctx, owner):
			if l.r.cfg.IsBusy == nil || !l.r.everHeld[name] || !l.r.cfg.IsBusy(name) { // otherwise earlier work under it has not ended
				free = append(free, name)
			}
		}
	}
	own += l.take(ctx, l.pick(free, max(0, fair-own)))
	given := map[string]storage.Revision{}
	for _, name := range l.r.cfg.Leases {
		switch {
		case !l.r.holds(name) && l.leases[name].owner == l.self.ID:
			l.release(ctx, name, l.leases[name].rev) // an earlier release failed
		case own > fair && l.canRelease(name):
			given[name] = l.drop(name)
			own--
		}
	}
	l.releaseAll(ctx, given)
}

// fairShare returns this replica's number of leases. The first replicas share the remainder.
func (l *membership) fairShare() int {
	if l.r.isRetiring() {
		return 0
	}
	all := 1
	for _, s := range l.seen {
		if !s.retiring {
			all++
		}
	}
	part := len(l.r.cfg.Leases) / all
	if l.rank() < len(l.r.cfg.Leases)%all {
		part++
	}
	return part
}

// rank returns how many of the replicas that do not retire come before this one.
func (l *membership) rank() int {
	place := 0
	for id, s := range l.seen {
		if !s.retiring && id < l.self.ID {
			place++
		}
	}
	return place
}

// pick returns at most count of the free leases. Replicas that find the same leases free at the same
// moment begin with different ones.
func (l *membership) pick(free []string, count int) []string {
	begin := l.rank() * len(free) / (len(l.seen) + 1)
	return slices.Concat(free[begin:], free[:begin])[:min(len(free), count)]
}

// canRelease reports whether a lease is held and may be released.
func (l *membership) canRelease(name string) bool {
	return l.r.holds(name) && (l.r.cfg.IsBusy == nil || !l.r.cfg.IsBusy(name))
}

// isDead reports whether no member has an id. The event of a joined member may arrive after that of its
// lease, so isDead asks the store, once for each id that is gone, because no other member gets that id.
func (l *membership) isDead(ctx context.Context, id string) bool {
	if _, seen := l.seen[id]; seen || l.dead[id] {
		return !seen
	}
	entry, err := l.r.cfg.Store.Get(ctx, memberPrefix+id)
	if err == nil {
		l.seen[id] = newSighting(entry)
	}
	if errors.Is(err, storage.ErrNotFound) {
		l.dead[id] = true
	}
	return l.dead[id]
}

// take claims leases, over the versions that were seen of them, and returns how many it got.
func (l *membership) take(ctx context.Context, free []string) int {
	taken := l.claim(ctx, free)
	if len(taken) == 0 {
		return 0
	}
	if l.r.cfg.OnTaken != nil {
		fences := make(map[string]storage.Op, len(taken))
		for _, name := range taken {
			fences[name] = storage.Check(leasePrefix+name, l.leases[name].rev)
		}
		if err := l.r.cfg.OnTaken(ctx, fences); err != nil {
			l.r.log.Warn("leases were taken but cannot be used, so they are released", "leases", len(taken), "err", err)
			for _, name := range taken {
				l.release(context.WithoutCancel(ctx), name, l.leases[name].rev)
			}
			return 0
		}
	}
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	for _, name := range taken {
		l.r.held[name], l.r.everHeld[name] = l.leases[name].rev, true
	}
	return len(taken)
}

// claim writes this replica into leases, in one step if no other replica was faster, and returns the
// leases that it got.
func (l *membership) claim(ctx context.Context, free []string) (got []string) {
	if len(free) == 0 {
		return nil
	}
	value, err := json.Marshal(lease{Owner: l.self.ID})
	if err != nil {
		return nil
	}
	ops := make([]storage.Op, len(free))
	for i, name := range free {
		ops[i] = storage.Put(leasePrefix+name, value, l.leases[name].rev)
	}
	rev, err := l.r.cfg.Store.Write(ctx, ops...)
	if err == nil {
		for _, name := range free {
			l.leases[name] = leaseState{l.self.ID, rev}
		}
		return free
	}
	for _, name := range free {
		if errors.Is(err, storage.ErrConflict) && ctx.Err() == nil && l.write(ctx, name, l.self.ID, l.leases[name].rev) == nil {
			got = append(got, name)
		}
	}
	return got
}

// drop ends the work under a lease, and returns the revision of the lease that this replica wrote.
func (l *membership) drop(name string) storage.Revision {
	l.r.mu.Lock()
	own := l.r.held[name]
	delete(l.r.held, name)
	l.r.mu.Unlock()
	l.r.cfg.OnLost(name)
	return own
}

// releaseAll releases leases, in one step if no other replica was faster.
func (l *membership) releaseAll(ctx context.Context, given map[string]storage.Revision) {
	if len(given) == 0 {
		return
	}
	value, err := json.Marshal(lease{})
	if err != nil {
		return
	}
	var ops []storage.Op
	for name, own := range given {
		ops = append(ops, storage.Put(leasePrefix+name, value, own))
	}
	rev, err := l.r.cfg.Store.Write(ctx, ops...)
	for name, own := range given {
		if err != nil {
			l.release(ctx, name, own)
			continue
		}
		l.leases[name] = leaseState{rev: rev}
	}
}

// release releases a lease over the revision that this replica wrote, because another replica may hold
// it by now.
func (l *membership) release(ctx context.Context, name string, own storage.Revision) {
	if err := l.write(ctx, name, "", own); err != nil && ctx.Err() == nil {
		l.r.log.Warn("a lease cannot be released", "lease", name, "err", err)
	}
}

// write writes the record of a lease over a revision of it.
func (l *membership) write(ctx context.Context, name, owner string, over storage.Revision) error {
	rev, err := storage.Save(ctx, l.r.cfg.Store, leasePrefix+name, lease{Owner: owner}, over)
	if errors.Is(err, storage.ErrConflict) {
		// The event for the change is still to come, but there is none for a deleted record.
		if entry, getErr := l.r.cfg.Store.Get(ctx, leasePrefix+name); getErr == nil {
			l.leases[name] = decodeLeaseState(entry)
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("write the lease %s: %w", name, err)
	}
	l.leases[name] = leaseState{owner, rev}
	return nil
}

// leave releases all leases and removes the member record, so that others need not wait.
func (l *membership) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), l.r.cfg.TTL)
	defer cancel()
	l.r.mu.Lock()
	held := maps.Clone(l.r.held)
	l.r.mu.Unlock()
	for name := range held {
		held[name] = l.drop(name)
	}
	l.releaseAll(ctx, held)
	// Accept any revision, because no other replica has the id, and the last beat may have been
	// interrupted after it was written.
	if err := l.r.cfg.Store.Delete(ctx, memberPrefix+l.self.ID, storage.Any); err != nil {
		l.r.log.Warn("the record of this replica cannot be removed; other replicas will presume it dead", "err", err, "after", l.r.cfg.TTL.Round(time.Second))
	}
}

// holds is [Replica.Holds] without the check that the replica is alive.
func (r *Replica) holds(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, held := r.held[name]
	return held
}
