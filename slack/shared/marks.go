package shared

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// marksKey is the key of the marks: up to when messages have arrived at any process of the bot, and in
// which threads it participates.
const marksKey = "slack/marks"

// marks is the state that all processes share.
type marks struct {
	Alive time.Time `json:"alive"`
	// Gap names a gap, Missing is since when something may be missing; both are zero if there is no
	// gap.
	Gap     string               `json:"gap,omitempty"`
	Missing time.Time            `json:"missing,omitzero"`
	Threads map[string]time.Time `json:"threads,omitempty"`
}

// Load loads the saved state, if it can be read.
func (r *Reach) Load(ctx context.Context) error {
	if r.kv == nil {
		return nil
	}
	saved, _, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	r.adopt(saved, closed)
	return r.LoadPostponed(ctx)
}

// Save merges this process's state with that of the others.
func (r *Reach) Save(ctx context.Context) error {
	if r.kv == nil {
		return nil
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	err := storage.ErrConflict
	for try := 0; errors.Is(err, storage.ErrConflict) && try < maxTries; try++ {
		err = r.join(ctx)
	}
	return err
}

func (r *Reach) join(ctx context.Context) error {
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

func (r *Reach) read(ctx context.Context) (m marks, entry storage.Entry, err error) {
	entry, err = r.kv.Get(ctx, marksKey)
	if errors.Is(err, storage.ErrNotFound) {
		return m, storage.Entry{}, nil
	}
	if err == nil {
		m, err = r.decode(entry.Value)
	}
	return m, entry, err
}

// decode decodes marks. It moves times in the future, of a clock that was set back, to now.
func (r *Reach) decode(state []byte) (m marks, err error) {
	if err := json.Unmarshal(state, &m); err != nil {
		return m, fmt.Errorf("decode marks: %w", err)
	}
	if now := r.clock.Now(); m.Alive.After(now) {
		m.Alive = now
	}
	return m, nil
}

// merge returns the combined state of this process and the others, and the name of the gap that this
// one has filled.
func (r *Reach) merge(theirs marks) (m marks, closed string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m = marks{Alive: later(theirs.Alive, r.alive), Gap: theirs.Gap, Missing: theirs.Missing, Threads: map[string]time.Time{}}
	if m.Gap == r.closed {
		m.Gap, m.Missing = "", time.Time{}
	}
	if r.opened {
		if m.Missing.IsZero() || r.missing.Before(m.Missing) {
			m.Missing = r.missing
		}
		m.Gap = r.gap
	}
	r.know(theirs.Threads)
	maps.DeleteFunc(r.live, func(_ chats.Chat, at time.Time) bool { return r.clock.Now().Sub(at) > maxIdle })
	for chat, at := range r.live {
		m.Threads[chat.String()] = at
	}
	return m, r.closed
}

// adopt takes over the stored state, unless something has happened since it was merged.
func (r *Reach) adopt(m marks, closed string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = later(r.alive, m.Alive)
	r.know(m.Threads)
	if r.opened && r.gap != m.Gap || r.closed != closed {
		return
	}
	r.opened, r.gap, r.missing = false, m.Gap, m.Missing
}

// know adds threads that others know.
func (r *Reach) know(threads map[string]time.Time) {
	for name, at := range threads {
		if chat, ok := threadOf(name); ok && at.After(r.live[chat]) {
			r.live[chat] = at
		}
	}
	r.trim()
}

func threadOf(name string) (chats.Chat, bool) {
	chat, err := chats.ParseChat(name)
	return chat, err == nil && chat.Platform == platform && chat.Thread != ""
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
