package telegram

import (
	"fmt"
	"strings"
	"time"

	"oneclaw/internal/emulator/wire"
)

// Effect is what a fault does to a call.
type Effect string

// The effects.
const (
	// Slow only waits for Delay; every other effect may wait too.
	Slow Effect = "slow"
	// TooManyRequests refuses with 429 and RetryAfter.
	TooManyRequests Effect = "too_many_requests"
	// ServerError answers Status (502 where none is given) with a page of HTML.
	ServerError Effect = "server_error"
	// CutBefore breaks the connection before the call is accepted.
	CutBefore Effect = "cut_before"
	// CutAfter accepts the call and breaks the connection instead of answering.
	CutAfter Effect = "cut_after"
	// Hang never answers; it ends when the client goes away.
	Hang Effect = "hang"
	// Conflict refuses with 409 as if another poller had come.
	Conflict Effect = "conflict"
	// Duplicate lets getUpdates deliver what it delivers once more at the next call.
	Duplicate Effect = "duplicate"
	// BadJSON accepts the call and answers with half a JSON object.
	BadJSON Effect = "bad_json"
)

// Fault is a rule for misbehaving. The zero fields match everything.
type Fault struct {
	// Method is the name of a method in any case, or "file" for downloads.
	Method string `json:"method"`
	// Chat is the chat_id of the call.
	Chat int64 `json:"chat"`
	// Nth fires on the nth matching call alone, counted from 1.
	Nth int `json:"nth"`
	// Times is how often it fires at most.
	Times int `json:"times"`
	// Probability lets chance decide, by the seed of the server. 0 means always.
	Probability float64 `json:"probability"`
	// Effect is what happens. It is required.
	Effect Effect `json:"effect"`
	// Delay is waited for before the effect.
	Delay time.Duration `json:"delay"`
	// Status is for ServerError, RetryAfter (seconds) for TooManyRequests.
	Status     int `json:"status"`
	RetryAfter int `json:"retry_after"`
}

// Inject adds a fault and returns its number. Where several match a call, the
// first one that fires is it.
func (s *Server) Inject(f Fault) (int, error) {
	switch f.Effect {
	case Slow, TooManyRequests, ServerError, CutBefore, CutAfter, Hang, Conflict, Duplicate, BadJSON:
	default:
		return 0, fmt.Errorf("telegram emulator: unknown effect %q", f.Effect)
	}
	f.Method = strings.ToLower(f.Method)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.Add(f, wire.Chance{Nth: f.Nth, Times: f.Times, Probability: f.Probability}), nil
}

// Remove takes a fault back and says how often it fired. 0 removes all.
func (s *Server) Remove(id int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.Remove(id)
}

// Fired says how often a fault fired.
func (s *Server) Fired(id int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.Fired(id)
}

// fire finds the fault a call meets.
func (s *Server) fire(method string, chat int64) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.Fire(func(f *Fault) bool {
		return (f.Method == "" || f.Method == method) && (f.Chat == 0 || f.Chat == chat)
	})
}
