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
	// maxLive bounds the threads in memory, maxIdle how long they stay there after their last message.
	maxLive = 500
	maxIdle = 7 * 24 * time.Hour
)

// Progress tracks up to which time events have arrived, in Slack's time, in which threads the bot
// participates, and in which threads messages are postponed. Its state is saved regularly, and merged with
// that of the bot's other processes.
type Progress struct {
	// Wake signals that a gap may have to be filled, or that there are postponed messages.
	Wake chan struct{}

	kv        storage.KV // if nil, nothing is stored
	clock     *Clock
	mu        sync.Mutex
	lastAlive time.Time // last sign of life of a connection
	// missingSince is when events may have begun to be missing; zero if none are. The gap has a name, so
	// that only a caller that has filled all of it closes it.
	missingSince time.Time
	gapName      string
	gapUnsaved   bool                        // the gap is not stored yet
	filledGap    string                      // last gap that was filled here
	threads      map[chats.Chat]time.Time    // threads with the bot, and the time of the last message
	postponed    map[chats.Chat]Postponement // threads with postponed messages
	saving       sync.Mutex                  // held while the state is read or written
	loaded       bool                        // the saved state was read; guarded by saving
}

// NewProgress returns an empty state. kv may be nil.
func NewProgress(kv storage.KV, clock *Clock) *Progress {
	return &Progress{
		Wake: make(chan struct{}, 1), kv: kv, clock: clock, threads: map[chats.Chat]time.Time{}, postponed: map[chats.Chat]Postponement{},
	}
}

// WakeUp signals Wake.
func (r *Progress) WakeUp() {
	select {
	case r.Wake <- struct{}{}:
	default:
	}
}

// RecordAlive records a sign of life of a connection.
func (r *Progress) RecordAlive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastAlive = r.clock.Now()
}

// RecordConnection records a connection. Before a new one, events may have been missed.
func (r *Progress) RecordConnection(isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if isNew && r.missingSince.IsZero() {
		r.missingSince = r.lastAlive
	}
	r.lastAlive = r.clock.Now()
	if isNew && !r.missingSince.IsZero() {
		r.gapName, r.gapUnsaved = rand.Text(), true
		r.WakeUp()
	}
}

// RecordMissed records that an event of the given time could not be stored.
func (r *Progress) RecordMissed(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missingSince.IsZero() || at.Before(r.missingSince) {
		r.missingSince = at
	}
	r.gapName, r.gapUnsaved = rand.Text(), true
	r.WakeUp()
}

// Gap returns since when events may be missing, and the name of the gap for [Progress.CloseGap].
func (r *Progress) Gap() (since time.Time, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missingSince, r.gapName
}

// CloseGap records that a gap is filled, unless there has been another one since.
func (r *Progress) CloseGap(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gapName == name {
		r.missingSince, r.gapName, r.gapUnsaved, r.filledGap = time.Time{}, "", false, name
	}
}

// Touch records a message in a thread with the bot.
func (r *Progress) Touch(chat chats.Chat) {
	if chat.Thread == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.threads[chat] = r.clock.Now()
	r.trim()
}

// trim removes the oldest surplus threads.
func (r *Progress) trim() {
	for len(r.threads) > maxLive {
		byAge := func(a, b chats.Chat) int { return r.threads[a].Compare(r.threads[b]) }
		delete(r.threads, slices.MinFunc(slices.Collect(maps.Keys(r.threads)), byAge))
	}
}

// Threads returns the threads with the bot, by channel, the latest first, because not all of them may
// be searched.
func (r *Progress) Threads() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]string{}
	latest := func(a, b chats.Chat) int { return r.threads[b].Compare(r.threads[a]) }
	for _, chat := range slices.SortedFunc(maps.Keys(r.threads), latest) {
		all[chat.ID] = append(all[chat.ID], chat.Thread)
	}
	return all
}

// ThreadTimes returns the threads with the bot, with the times of their last messages.
func (r *Progress) ThreadTimes() map[chats.Chat]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.threads)
}
