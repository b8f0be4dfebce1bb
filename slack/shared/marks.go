package shared

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// marksKey is the key of the marks: up to which time messages have arrived at any process of the bot,
// and in which threads it participates.
const marksKey = "slack/marks"

// marks is the state that all processes share.
type marks struct {
	LastAlive time.Time `json:"alive"`
	// GapName names a gap. MissingSince is when it began. Both are zero if there is
	// no gap.
	GapName      string               `json:"gap,omitempty"`
	MissingSince time.Time            `json:"missing,omitzero"`
	Threads      map[string]time.Time `json:"threads,omitempty"`
}

// Load loads the saved state. If it cannot be read now, [Progress.Save] loads it.
func (r *Progress) Load(ctx context.Context) error {
	if r.kv == nil {
		return nil
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	return r.load(ctx)
}

func (r *Progress) load(ctx context.Context) error {
	saved, _, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	closed, late := r.filledGap, !r.loaded && !r.lastAlive.IsZero()
	r.mu.Unlock()
	if late && !saved.LastAlive.IsZero() {
		r.RecordMissed(saved.LastAlive) // the connection was recorded without it
	}
	r.adopt(saved, closed)
	err = r.LoadPostponed(ctx)
	r.loaded = err == nil
	return err
}

// Save merges this process's state with that of the others, and stores it.
func (r *Progress) Save(ctx context.Context) error {
	if r.kv == nil {
		return nil
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	if !r.loaded {
		if err := r.load(ctx); err != nil {
			return err
		}
	}
	return storage.Retry(ctx, func() error { return r.saveMerged(ctx) })
}

func (r *Progress) saveMerged(ctx context.Context) error {
	theirs, entry, err := r.read(ctx)
	if err != nil {
		return err
	}
	ours, closed := r.merge(theirs)
	state, err := json.Marshal(ours)
	if err != nil {
		return fmt.Errorf("encode marks: %w", err)
	}
	if string(state) != string(entry.Value) {
		if _, err := r.kv.Put(ctx, marksKey, state, entry.Revision); err != nil {
			return err
		}
	}
	r.adopt(ours, closed)
	return nil
}

func (r *Progress) read(ctx context.Context) (m marks, entry storage.Entry, err error) {
	entry, err = storage.Find(ctx, r.kv, marksKey)
	if err == nil && entry.Revision != storage.Absent {
		m, err = r.decode(entry.Value)
	}
	return m, entry, err
}

// decode decodes marks. It moves a time in the future, left by a clock that was set back, to now.
func (r *Progress) decode(state []byte) (m marks, err error) {
	if err := json.Unmarshal(state, &m); err != nil {
		return m, fmt.Errorf("decode marks: %w", err)
	}
	if now := r.clock.Now(); m.LastAlive.After(now) {
		m.LastAlive = now
	}
	return m, nil
}

// merge returns the combined state of this process and the others, and the name of the last gap that
// this process has filled.
func (r *Progress) merge(theirs marks) (m marks, closed string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m = marks{LastAlive: later(theirs.LastAlive, r.lastAlive), GapName: theirs.GapName, MissingSince: theirs.MissingSince, Threads: map[string]time.Time{}}
	if m.GapName == r.filledGap {
		m.GapName, m.MissingSince = "", time.Time{}
	}
	if r.gapUnsaved {
		if m.MissingSince.IsZero() || r.missingSince.Before(m.MissingSince) {
			m.MissingSince = r.missingSince
		}
		m.GapName = r.gapName
	}
	r.addThreads(theirs.Threads)
	maps.DeleteFunc(r.threads, func(_ chats.Chat, at time.Time) bool { return r.clock.Now().Sub(at) > maxIdle })
	for chat, at := range r.threads {
		m.Threads[chat.String()] = at
	}
	return m, r.filledGap
}

// adopt takes over the stored state, unless this process's state has changed since it was merged.
func (r *Progress) adopt(m marks, closed string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastAlive = later(r.lastAlive, m.LastAlive)
	r.addThreads(m.Threads)
	if r.gapUnsaved && r.gapName != m.GapName || r.filledGap != closed {
		return
	}
	r.gapUnsaved, r.gapName, r.missingSince = false, m.GapName, m.MissingSince
}

// addThreads adds the threads of other processes.
func (r *Progress) addThreads(threads map[string]time.Time) {
	for name, at := range threads {
		if chat, ok := parseThread(name); ok && at.After(r.threads[chat]) {
			r.threads[chat] = at
		}
	}
	r.trim()
}

func parseThread(name string) (chats.Chat, bool) {
	chat, err := chats.ParseChat(name)
	return chat, err == nil && chat.Platform == platform && chat.Thread != ""
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
