package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/slack/shared"
	"oneclaw/storage"
)

// marksKey is where the store keeps up to when the platform has received, and in which
// threads it takes part.
const marksKey = "slack/marks"

const (
	// saveInterval is how often the marks are saved while something changes.
	saveInterval = 30 * time.Second
	// pruneInterval is how often what is over is removed from the store.
	pruneInterval = time.Hour
	// maxLive bounds the threads that are remembered, maxIdle how long each is that
	// nobody writes in.
	maxLive = 500
	maxIdle = 7 * 24 * time.Hour
)

// reach is how far what happened at Slack is known to have arrived, in Slack's time.
type reach struct {
	mu      sync.Mutex
	alive   time.Time // the last sign of life of a connection
	missing time.Time // since when something may be missing; zero where nothing is
	gaps    int
	live    map[chats.Chat]time.Time // threads with the bot, and when somebody wrote
	owed    map[chats.Chat]debt      // threads with messages that were put off
	changed bool
	saving  sync.Mutex // held while the state is written, so that no older one follows
	clock   *shared.Clock
	wake    chan struct{} // tells who fills gaps; nil where nobody does
}

func (r *reach) sign() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive, r.changed = r.clock.Now(), true
}

// connected notes a connection. A new one may have missed something.
func (r *reach) connected(isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if isNew && r.missing.IsZero() {
		r.missing = r.alive
	}
	r.alive, r.changed = r.clock.Now(), true
	if isNew && !r.missing.IsZero() && r.wake != nil {
		r.gaps++
		r.ring()
	}
}

// gap returns since when something may be missing, and a number for filled.
func (r *reach) gap() (since time.Time, number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing, r.gaps
}

// filled notes that nothing is missing, unless there was another gap meanwhile.
func (r *reach) filled(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gaps == number {
		r.missing, r.changed = time.Time{}, true
	}
}

// touch notes that somebody writes in a thread with the bot.
func (r *reach) touch(chat chats.Chat) {
	if chat.Thread == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[chat], r.changed = r.clock.Now(), true
	for len(r.live) > maxLive {
		byAge := func(a, b chats.Chat) int { return r.live[a].Compare(r.live[b]) }
		delete(r.live, slices.MinFunc(slices.Collect(maps.Keys(r.live)), byAge))
	}
}

// threads returns the threads with the bot, by channel: first those in which somebody wrote
// last, because not all may be searched.
func (r *reach) threads() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]string{}
	latest := func(a, b chats.Chat) int { return r.live[b].Compare(r.live[a]) }
	for _, chat := range slices.SortedFunc(maps.Keys(r.live), latest) {
		all[chat.ID] = append(all[chat.ID], chat.Thread)
	}
	return all
}

// all returns the threads with the bot, and when somebody wrote there.
func (r *reach) all() map[chats.Chat]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.live)
}

type saved struct {
	Seen    time.Time            `json:"seen"`
	Threads map[string]time.Time `json:"threads,omitempty"`
	Owed    map[string]debt      `json:"owed,omitempty"`
}

// encode returns the state to save, or nil where it has not changed.
func (r *reach) encode() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.changed {
		return nil, nil
	}
	r.changed = false
	s := saved{Seen: r.alive, Threads: map[string]time.Time{}, Owed: map[string]debt{}}
	for chat, d := range r.owed {
		s.Owed[chat.String()] = d
	}
	if !r.missing.IsZero() {
		s.Seen = r.missing
	}
	for chat, at := range r.live {
		if r.clock.Now().Sub(at) > maxIdle {
			delete(r.live, chat)
			continue
		}
		s.Threads[chat.String()] = at
	}
	return json.Marshal(s)
}

func (r *reach) decode(state []byte) error {
	var s saved
	if err := json.Unmarshal(state, &s); err != nil {
		return fmt.Errorf("decode marks: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = s.Seen
	if now := r.clock.Now(); r.alive.After(now) {
		r.alive = now // the clock went back
	}
	for name, at := range s.Threads {
		if chat, err := chats.ParseChat(name); err == nil && chat.Platform == Name && chat.Thread != "" && len(r.live) < maxLive {
			r.live[chat] = at
		}
	}
	for name, d := range s.Owed {
		if chat, err := chats.ParseChat(name); err == nil && chat.Platform == Name && chat.Thread != "" && len(r.owed) < maxDebts {
			r.owed[chat] = d
		}
	}
	return nil
}

// loadMarks takes up where the last Run ended, if that can be read.
func (p *Platform) loadMarks(ctx context.Context) {
	if p.kv == nil {
		return
	}
	marks, err := p.kv.Get(ctx, marksKey)
	if errors.Is(err, storage.ErrNotFound) {
		return
	}
	if err == nil {
		err = p.reach.decode(marks.Value)
	}
	if err != nil {
		p.log.Error("not known since when messages are missing: those of the time without a connection are not fetched", "err", err)
		return
	}
	for chat, at := range p.reach.all() {
		p.threads.Put(chat, thread{joined: true}, joinedAge)
		if p.reach.clock.Now().Sub(at) < statusAge {
			p.statuses.remember(chat) // a process that was killed has cleared nothing
		}
	}
}

func (p *Platform) trySaveMarks(ctx context.Context) error {
	if p.kv == nil {
		return nil
	}
	p.reach.saving.Lock()
	defer p.reach.saving.Unlock()
	state, err := p.reach.encode()
	if err == nil && state != nil {
		_, err = p.kv.Put(ctx, marksKey, state, storage.Any)
	}
	return err
}

func (p *Platform) saveMarks(ctx context.Context) {
	if err := p.trySaveMarks(ctx); err != nil {
		p.log.Warn("not saved up to when messages have arrived: more than needed may be fetched after a restart", "err", err)
	}
}

// upkeep saves the marks now and then, and clears statuses that should not stand. Where no
// socket shows signs of life, as with posted events, that the program runs is one.
func (p *Platform) upkeep(ctx context.Context, sockets bool) {
	tick, seldom := time.NewTicker(saveInterval), time.NewTicker(pruneInterval)
	defer tick.Stop()
	defer seldom.Stop()
	for {
		p.sweep(ctx, true)
		select {
		case <-ctx.Done():
			return
		case <-seldom.C:
			if err := p.responses.Prune(ctx); err != nil {
				p.log.Warn("what is over stays in the store until the next time", "err", err)
			}
		case <-tick.C:
			if !sockets {
				p.reach.sign()
			}
			p.saveMarks(ctx)
		}
	}
}
