package replicas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/storage"
)

// busyInterval is the interval at which a retiring replica checks whether a lease is busy.
const busyInterval = 100 * time.Millisecond

// membership is a replica under one id. It has two goroutines: the beats, which own self and rev, and
// the watch, which owns the rest.
type membership struct {
	r    *Replica
	self Member
	rev  storage.Revision

	seen   map[string]sighting // the other members
	dead   map[string]bool     // ids of leases' former owners, since readAll
	leases map[string]leaseState
}

// leaseState is the newest known version of a lease's record.
type leaseState struct {
	owner string // empty if no replica holds it
	rev   storage.Revision
}

// sighting is the newest known version of a member record, and when it was first seen.
type sighting struct {
	rev      storage.Revision
	at       time.Time
	retiring bool
}

// beat writes the member record. If another replica has removed the record, this replica is presumed
// dead.
func (l *membership) beat(ctx context.Context) error {
	begun := time.Now()
	l.self.Beat++
	l.self.Retiring = l.r.isRetiring()
	rev, err := storage.Save(ctx, l.r.cfg.Store, memberPrefix+l.self.ID, l.self, l.rev)
	if errors.Is(err, storage.ErrConflict) {
		// An earlier beat may have been written although it returned an error.
		entry, getErr := l.r.cfg.Store.Get(ctx, memberPrefix+l.self.ID)
		if getErr == nil {
			l.rev = entry.Revision
			return errRetryBeat
		}
		if errors.Is(getErr, storage.ErrNotFound) && l.rev != storage.Absent {
			return errDead
		}
		return getErr
	}
	if err != nil {
		return fmt.Errorf("write the record of this replica: %w", err)
	}
	l.rev = rev
	l.r.mu.Lock()
	l.r.lastBeat = begun
	l.r.mu.Unlock()
	return nil
}

// errRetryBeat is returned for a beat that should be retried at once.
var errRetryBeat = errors.New("replicas: the record had another revision")

// keepBeating beats until ctx ends or the replica is presumed dead. If the store does not answer, it
// retries; in the meantime [Replica.Holds] returns false.
func (l *membership) keepBeating(ctx context.Context) error {
	every := time.NewTicker(l.r.cfg.TTL / beatsPerTTL)
	defer every.Stop()
	retiring := l.r.retiring
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		case <-retiring:
			retiring = nil
		}
		limited, cancel := context.WithTimeout(ctx, l.r.cfg.TTL/2)
		err := l.beat(limited)
		if errors.Is(err, errRetryBeat) {
			err = l.beat(limited)
		}
		cancel()
		switch {
		case errors.Is(err, errDead):
			return err
		case err != nil && ctx.Err() == nil:
			l.r.log.Warn("the record of this replica cannot be written", "err", err)
		}
	}
}

// keepWatching watches until ctx ends. An unavailable store or lost events are no reason to release
// leases that the beats still prove to be held.
func (l *membership) keepWatching(ctx context.Context) error {
	for {
		err := l.watch(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, storage.ErrClosed) {
			return err
		}
		if errors.Is(err, storage.ErrLagged) {
			continue
		}
		l.r.log.Warn("the other replicas cannot be read; trying again", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(l.r.cfg.TTL / beatsPerTTL):
		}
	}
}

// watch observes the other replicas, removes dead ones, and takes and releases leases.
func (l *membership) watch(ctx context.Context) error {
	events := make(chan storage.Event)
	failed := make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	changes := l.r.cfg.Store.Watch(watching, prefix)
	go func() {
		defer close(done)
		for e, err := range changes {
			if err != nil {
				failed <- err
				return
			}
			select {
			case events <- e:
			case <-watching.Done():
				return
			}
		}
	}()
	defer func() { stop(); <-done }()
	if err := l.readAll(ctx); err != nil {
		return err
	}
	// The beats of other replicas arrive as events; other work is done at the interval of this replica's
	// beats.
	every := time.NewTicker(l.r.cfg.TTL / beatsPerTTL)
	defer every.Stop()
	retiring := l.r.retiring
	for {
		deadline := time.NewTimer(l.nextDeath())
		select {
		case <-ctx.Done():
			deadline.Stop()
			return context.Cause(ctx)
		case err := <-failed:
			deadline.Stop()
			return fmt.Errorf("watch the other replicas: %w", err)
		case e := <-events:
			l.applyEvent(e)
		case <-deadline.C:
			l.removeDead(ctx)
		case <-every.C:
		case <-retiring:
			retiring = nil
			every.Reset(busyInterval)
		}
		deadline.Stop()
		l.share(ctx)
	}
}

// readAll reads all records. Each member whose record has changed counts as seen now.
func (l *membership) readAll(ctx context.Context) error {
	l.leases, l.dead = map[string]leaseState{}, map[string]bool{}
	for entry, err := range l.r.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return fmt.Errorf("list replicas: %w", err)
		}
		l.applyEvent(storage.Event{Entry: entry})
	}
	l.share(ctx)
	return nil
}

// applyEvent applies a change of a record.
func (l *membership) applyEvent(e storage.Event) {
	if name, ok := cutPrefix(e.Key, leasePrefix); ok {
		if e.Revision >= l.leases[name].rev {
			l.leases[name] = decodeLeaseState(e.Entry)
		}
		return
	}
	id, _ := cutPrefix(e.Key, memberPrefix)
	switch {
	case id == l.self.ID:
	case e.Deleted:
		delete(l.seen, id)
	case e.Revision > l.seen[id].rev:
		l.seen[id] = newSighting(e.Entry)
	}
}

// newSighting returns the sighting of a member record, seen now.
func newSighting(entry storage.Entry) sighting {
	var m Member
	// Changes of a record that does not decode are nevertheless signs of life.
	_ = json.Unmarshal(entry.Value, &m)
	return sighting{rev: entry.Revision, at: time.Now(), retiring: m.Retiring}
}

// nextDeath returns the time until the next silent member counts as dead.
func (l *membership) nextDeath() time.Duration {
	next := l.r.cfg.TTL
	for _, s := range l.seen {
		next = min(next, time.Until(s.at.Add(l.r.cfg.TTL)))
	}
	return max(next, 0)
}

// removeDead removes the records of members that gave no sign of life for the time to live. A conflict
// is a sign of life.
func (l *membership) removeDead(ctx context.Context) {
	for id, s := range l.seen {
		if time.Since(s.at) < l.r.cfg.TTL {
			continue
		}
		err := l.r.cfg.Store.Delete(ctx, memberPrefix+id, s.rev)
		switch {
		case err == nil:
			l.r.log.Warn("another replica is presumed dead; its chats are taken over", "id", id)
			delete(l.seen, id)
		case errors.Is(err, storage.ErrConflict):
			entry, err := l.r.cfg.Store.Get(ctx, memberPrefix+id)
			if errors.Is(err, storage.ErrNotFound) {
				delete(l.seen, id)
			} else if err == nil {
				l.seen[id] = newSighting(entry)
			}
		default:
			// The store does not answer, so dead and silent replicas cannot be distinguished.
			l.seen[id] = sighting{rev: s.rev, at: time.Now(), retiring: s.retiring}
		}
	}
}

func cutPrefix(key, prefix string) (string, bool) { return strings.CutPrefix(key, prefix) }

func decodeLeaseState(e storage.Entry) leaseState {
	return leaseState{decodeLease(e.Value).Owner, e.Revision}
}

func decodeLease(value []byte) (l lease) {
	// A record that does not decode belongs to no replica.
	_ = json.Unmarshal(value, &l)
	return l
}
