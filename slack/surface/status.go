package surface

import (
	"sync"
	"time"

	"oneclaw/bridge/chats"
)

const (
	// statusRefresh is the interval at which a status is set again: Slack drops it after two minutes.
	statusRefresh = time.Minute
	// maxStatuses bounds the statuses shown at once.
	maxStatuses = 10_000
)

// Statuses tracks the statuses that may be shown. While one is shown, users cannot write in the thread,
// so none may be left behind.
type Statuses struct {
	mu       sync.Mutex
	disabled bool // the app may not show statuses
	shown    map[chats.Chat]*shownStatus
}

// NewStatuses returns an empty set.
func NewStatuses() *Statuses { return &Statuses{shown: make(map[chats.Chat]*shownStatus)} }

// shownStatus is a status that may be shown.
type shownStatus struct {
	setAt        time.Time // when it was last set; it is due again after statusRefresh
	runningCalls int       // running calls that set it
	endedAt      time.Time // when the last of these calls ended
	stale        bool      // it should be cleared, but may still be shown
}

// Begin records that a status is about to be set, and reports whether to set it.
func (s *Statuses) Begin(chat chats.Chat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.shown[chat]
	if s.disabled || st == nil && len(s.shown) >= maxStatuses || st != nil && time.Since(st.setAt) < statusRefresh {
		return false
	}
	if st == nil {
		st = &shownStatus{}
		s.shown[chat] = st
	}
	st.setAt, st.stale = time.Now(), false
	st.runningCalls++
	return true
}

// End records that the call after [Statuses.Begin] has ended.
func (s *Statuses) End(chat chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.shown[chat]; st != nil {
		st.runningCalls--
		st.endedAt = time.Now()
	}
}

// RecordAnswer records that an answer, begun at a time, has arrived. The answer clears the status, but not
// one that was set while the answer was being sent.
func (s *Statuses) RecordAnswer(chat chats.Chat, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.shown[chat]
	switch {
	case st == nil:
	case st.runningCalls == 0 && st.endedAt.Before(begun):
		delete(s.shown, chat)
	default:
		st.setAt = time.Time{}
	}
}

// Forget removes a status, and reports whether it may have been shown.
func (s *Statuses) Forget(chat chats.Chat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.shown[chat]
	delete(s.shown, chat)
	return known
}

// AddStale records a status that should be cleared.
func (s *Statuses) AddStale(chat chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown[chat] != nil || s.disabled || len(s.shown) >= maxStatuses {
		return
	}
	s.shown[chat] = &shownStatus{endedAt: time.Now(), stale: true}
}

// TurnOff disables statuses.
func (s *Statuses) TurnOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disabled = true
	clear(s.shown)
}

// List returns the chats where a status may be shown: all, or only those with a stale status.
func (s *Statuses) List(onlyStale bool) []chats.Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chats []chats.Chat
	for chat, st := range s.shown {
		if st.stale || !onlyStale {
			chats = append(chats, chat)
		}
	}
	return chats
}
