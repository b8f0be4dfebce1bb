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

// busyAgain is the interval at which a retiring replica checks whether a lease is busy.
const busyAgain = 100 * time.Millisecond

// life is a replica under one id. It has two goroutines: the beats, which own self and rev, and the
// watch, which owns the rest.
type life struct {
	r    *Replica
	self Member
	rev  storage.Revision

	seen   map[string]sight // the other members
	leases map[string]ownership
}

// ownership is the newest version of a lease's record.
type ownership struct {
	owner string // empty if no replica holds it
	rev   storage.Revision
}

// sight is the newest version of a member record and when it was first seen.
type sight struct {
	rev     storage.Revision
	at      time.Time
	retires bool
}

// beat writes the member record. If another replica has changed it, this one is dead.
func (l *life) beat(ctx context.Context) error {
	begun := time.Now()
	l.self.Beat++
	l.self.Retires = l.r.retires()
	value, err := json.Marshal(l.self)
	if err != nil {
		return fmt.Errorf("encode the record of this replica: %w", err)
	}
	rev, err := l.r.cfg.Store.Put(ctx, memberPrefix+l.self.ID, value, l.rev)
	if errors.Is(err, storage.ErrConflict) {
		// An earlier beat may have been written although it returned an error.
		entry, getErr := l.r.cfg.Store.Get(ctx, memberPrefix+l.self.ID)
		if getErr == nil {
			l.rev = entry.Revision
			return errAgain
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
	l.r.beaten = begun
	l.r.mu.Unlock()
	return nil
}

// errAgain makes a beat retry at once.
var errAgain = errors.New("replicas: the record had another revision")

// keepBeating beats until ctx ends or the replica is presumed dead. If the store does not answer, it
// retries; [Replica.Holds] returns false meanwhile.
func (l *life) keepBeating(ctx context.Context) error {
	every := time.NewTicker(l.r.cfg.TTL / beats)
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
		if errors.Is(err, errAgain) {
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

// keepWatching is watch until ctx ends: an unavailable store, or lost events, are no reason to release
// leases that the beats still prove to be held.
func (l *life) keepWatching(ctx context.Context) error {
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
		l.r.log.Warn("the store cannot be asked who else is there; trying again", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(l.r.cfg.TTL / beats):
		}
	}
}

// watch observes the others, removes dead ones, and takes and releases leases.
func (l *life) watch(ctx context.Context) error {
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
	if err := l.look(ctx); err != nil {
		return err
	}
	// The beats of others come as events; other work is done at the interval of our own.
	every := time.NewTicker(l.r.cfg.TTL / beats)
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
			l.note(e)
		case <-deadline.C:
			l.removeDead(ctx)
		case <-every.C:
		case <-retiring:
			retiring = nil
			every.Reset(busyAgain)
		}
		deadline.Stop()
		l.share(ctx)
	}
}

// look reads all records. A member counts as seen now.
func (l *life) look(ctx context.Context) error {
	l.leases = map[string]ownership{}
	for entry, err := range l.r.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return fmt.Errorf("list replicas: %w", err)
		}
		l.note(storage.Event{Entry: entry})
	}
	l.share(ctx)
	return nil
}

// note applies a change.
func (l *life) note(e storage.Event) {
	if name, ok := cutPrefix(e.Key, leasePrefix); ok {
		if e.Revision >= l.leases[name].rev {
			l.leases[name] = ownershipOf(e.Entry)
		}
		return
	}
	id, _ := cutPrefix(e.Key, memberPrefix)
	switch {
	case id == l.self.ID:
	case e.Deleted:
		delete(l.seen, id)
	case e.Revision > l.seen[id].rev:
		l.seen[id] = sightOf(e.Entry)
	}
}

// sightOf returns the sight of a member record, seen now.
func sightOf(entry storage.Entry) sight {
	var m Member
	// Changes of a record that does not decode are signs of life all the same.
	_ = json.Unmarshal(entry.Value, &m)
	return sight{rev: entry.Revision, at: time.Now(), retires: m.Retires}
}

// nextDeath returns the time until the next silent member counts as dead.
func (l *life) nextDeath() time.Duration {
	next := l.r.cfg.TTL
	for _, s := range l.seen {
		next = min(next, time.Until(s.at.Add(l.r.cfg.TTL)))
	}
	return max(next, 0)
}

// removeDead removes the records of members that gave no sign of life for the time to live. A conflict is a
// sign of life.
func (l *life) removeDead(ctx context.Context) {
	for id, s := range l.seen {
		if time.Since(s.at) < l.r.cfg.TTL {
			continue
		}
		err := l.r.cfg.Store.Delete(ctx, memberPrefix+id, s.rev)
		switch {
		case err == nil:
			l.r.log.Warn("another replica is dead, its chats are taken over", "id", id)
			delete(l.seen, id)
		case errors.Is(err, storage.ErrConflict):
			entry, err := l.r.cfg.Store.Get(ctx, memberPrefix+id)
			if errors.Is(err, storage.ErrNotFound) {
				delete(l.seen, id)
			} else if err == nil {
				l.seen[id] = sightOf(entry)
			}
		default:
			// The store does not answer: dead and silent replicas cannot be distinguished.
			l.seen[id] = sight{rev: s.rev, at: time.Now(), retires: s.retires}
		}
	}
}

func cutPrefix(key, prefix string) (string, bool) { return strings.CutPrefix(key, prefix) }

func ownershipOf(e storage.Entry) ownership { return ownership{decodeLease(e.Value).Owner, e.Revision} }

func decodeLease(value []byte) (l lease) {
	// A record that does not decode belongs to no replica.
	_ = json.Unmarshal(value, &l)
	return l
}
