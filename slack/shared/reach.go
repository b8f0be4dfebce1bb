package shared

import (
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// platform is the Chat.Platform of Slack's chats.
const platform = "slack"

const (
	// MaxLive bounds how many threads are remembered, maxIdle for how long after their last message.
	MaxLive = 500
	maxIdle = 7 * 24 * time.Hour
)

// Reach tracks up to when events have arrived, in Slack's time. Its state is saved regularly, and
// merged with that of the bot's other processes.
type Reach struct {
	// Wake signals that a gap may have to be filled.
	Wake chan struct{}

	kv    storage.KV // nil: nothing is kept
	clock *Clock
	mu    sync.Mutex
	alive time.Time // last sign of life of a connection
	// missing is since when something may be missing; zero if nothing is. The gap has a name, so that
	// only a caller that has filled all of it closes it.
	missing   time.Time
	gap       string
	opened    bool                        // the gap is not stored yet
	closed    string                      // last gap that was filled here
	live      map[chats.Chat]time.Time    // threads with the bot, and the time of the last message
	postponed map[chats.Chat]Postponement // threads with postponed messages
	saving    sync.Mutex                  // held while the state is written
}

// NewReach returns an empty state. kv may be nil.
func NewReach(kv storage.KV, clock *Clock) *Reach {
	return &Reach{
		Wake: make(chan struct{}, 1), kv: kv, clock: clock, live: map[chats.Chat]time.Time{}, postponed: map[chats.Chat]Postponement{},
	}
}

// WakeUp signals Wake.
func (r *Reach) WakeUp() {
	select {
	case r.Wake <- struct{}{}:
	default:
	}
}

// SignOfLife records a sign of life of a connection.
func (r *Reach) SignOfLife() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = r.clock.Now()
}

// Connected records a connection. A new one may have missed something.
func (r *Reach) Connected(isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if isNew && r.missing.IsZero() {
		r.missing = r.alive
	}
	r.alive = r.clock.Now()
	if isNew && !r.missing.IsZero() {
		r.gap, r.opened = rand.Text(), true
		r.WakeUp()
	}
}

// Gap returns since when something may be missing, and a name for [Reach.Filled].
func (r *Reach) Gap() (since time.Time, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing, r.gap
}

// Filled records that nothing is missing, unless there was another gap meanwhile.
func (r *Reach) Filled(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gap == name {
		r.missing, r.gap, r.opened, r.closed = time.Time{}, "", false, name
	}
}

// Touch records that a user writes in a thread with the bot.
func (r *Reach) Touch(chat chats.Chat) {
	if chat.Thread == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[chat] = r.clock.Now()
	r.trim()
}

// trim forgets surplus threads.
func (r *Reach) trim() {
	for len(r.live) > MaxLive {
		byAge := func(a, b chats.Chat) int { return r.live[a].Compare(r.live[b]) }
		delete(r.live, slices.MinFunc(slices.Collect(maps.Keys(r.live)), byAge))
	}
}

// Threads returns the threads with the bot, by channel, the latest first, because not all may be
// searched.
func (r *Reach) Threads() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]string{}
	latest := func(a, b chats.Chat) int { return r.live[b].Compare(r.live[a]) }
	for _, chat := range slices.SortedFunc(maps.Keys(r.live), latest) {
		all[chat.ID] = append(all[chat.ID], chat.Thread)
	}
	return all
}

// All returns the threads with the bot, with the time of the last message.
func (r *Reach) All() map[chats.Chat]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.live)
}
