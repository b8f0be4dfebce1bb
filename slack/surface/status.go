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
	mu    sync.Mutex
	off   bool // the app may not show any
	shown map[chats.Chat]*shown
}

// NewStatuses returns an empty set.
func NewStatuses() *Statuses { return &Statuses{shown: make(map[chats.Chat]*shown)} }

// shown is a status that may be shown.
type shown struct {
	at    time.Time // last set; due again after statusRefresh
	busy  int       // running calls that set it
	ended time.Time // when the last of them ended
	left  bool      // it should be cleared, and may still be shown
}

// Begin records that a status is about to be set, and reports whether to set it.
func (s *Statuses) Begin(chat chats.Chat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.shown[chat]
	if s.off || st == nil && len(s.shown) >= maxStatuses || st != nil && time.Since(st.at) < statusRefresh {
		return false
	}
	if st == nil {
		st = &shown{}
		s.shown[chat] = st
	}
	st.at, st.left = time.Now(), false
	st.busy++
	return true
}

// End records that the call after Begin has ended.
func (s *Statuses) End(chat chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.shown[chat]; st != nil {
		st.busy--
		st.ended = time.Now()
	}
}

// Answered records that an answer, begun at a time, has arrived: that clears the status, but not one
// that was set while the answer was being sent.
func (s *Statuses) Answered(chat chats.Chat, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.shown[chat]
	switch {
	case st == nil:
	case st.busy == 0 && st.ended.Before(begun):
		delete(s.shown, chat)
	default:
		st.at = time.Time{}
	}
}

// Forget reports whether a status may be shown, and forgets it.
func (s *Statuses) Forget(chat chats.Chat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.shown[chat]
	delete(s.shown, chat)
	return known
}

// Remember records a stale status.
func (s *Statuses) Remember(chat chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown[chat] != nil || s.off || len(s.shown) >= maxStatuses {
		return
	}
	s.shown[chat] = &shown{ended: time.Now(), left: true}
}

// TurnOff disables statuses.
func (s *Statuses) TurnOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = true
	clear(s.shown)
}

// List returns the chats where a status may be shown: all, or only the stale ones.
func (s *Statuses) List(leftAlone bool) []chats.Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chats []chats.Chat
	for chat, st := range s.shown {
		if st.left || !leftAlone {
			chats = append(chats, chat)
		}
	}
	return chats
}
