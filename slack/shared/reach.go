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
	// MaxLive bounds the threads that are remembered, maxIdle how long each is without
	// a message.
	MaxLive = 500
	maxIdle = 7 * 24 * time.Hour
)

// Reach is how far what happened at Slack is known to have arrived, in Slack's time. What it
// knows is saved now and then, and joined with what the other processes of the bot have saved.
type Reach struct {
	// Wake tells who fills gaps.
	Wake chan struct{}

	kv    storage.KV // nil: nothing is kept
	clock *Clock
	mu    sync.Mutex
	alive time.Time // the last sign of life of a connection
	// missing is since when something may be missing; zero where nothing is. The gap has a
	// name, so that only who filled all of it closes it.
	missing time.Time
	gap     string
	opened  bool                      // the gap is not in the store yet
	closed  string                    // the last gap that was filled here
	live    map[chats.Chat]time.Time  // threads with the bot, and when a user wrote last
	owed    map[chats.Chat]Unresolved // threads with messages that were put off
	saving  sync.Mutex                // held while the state is written
}

// NewReach knows nothing yet. Kv may be nil.
func NewReach(kv storage.KV, clock *Clock) *Reach {
	return &Reach{
		Wake: make(chan struct{}, 1), kv: kv, clock: clock, live: map[chats.Chat]time.Time{}, owed: map[chats.Chat]Unresolved{},
	}
}

// Ring wakes who fills gaps.
func (r *Reach) Ring() {
	select {
	case r.Wake <- struct{}{}:
	default:
	}
}

// Sign notes a sign of life of a connection.
func (r *Reach) Sign() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = r.clock.Now()
}

// Connected notes a connection. A new one may have missed something.
func (r *Reach) Connected(isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if isNew && r.missing.IsZero() {
		r.missing = r.alive
	}
	r.alive = r.clock.Now()
	if isNew && !r.missing.IsZero() {
		r.gap, r.opened = rand.Text(), true
		r.Ring()
	}
}

// Gap returns since when something may be missing, and a name for [Reach.Filled].
func (r *Reach) Gap() (since time.Time, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing, r.gap
}

// Filled notes that nothing is missing, unless there was another gap meanwhile.
func (r *Reach) Filled(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gap == name {
		r.missing, r.gap, r.opened, r.closed = time.Time{}, "", false, name
	}
}

// Touch notes that a user writes in a thread with the bot.
func (r *Reach) Touch(chat chats.Chat) {
	if chat.Thread == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[chat] = r.clock.Now()
	r.trim()
}

// trim forgets the threads that are too many.
func (r *Reach) trim() {
	for len(r.live) > MaxLive {
		byAge := func(a, b chats.Chat) int { return r.live[a].Compare(r.live[b]) }
		delete(r.live, slices.MinFunc(slices.Collect(maps.Keys(r.live)), byAge))
	}
}

// Threads returns the threads with the bot, by channel: first those in which a user wrote
// last, because not all may be searched.
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

// All returns the threads with the bot, and when a user wrote last there.
func (r *Reach) All() map[chats.Chat]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.live)
}
