package telegram

import (
	"net/http"

	"oneclaw/internal/emulator/wire"
)

// Kinds of events.
const (
	EventMessage  = "message"
	EventEdit     = "edit"
	EventDelete   = "delete"
	EventReaction = "reaction"
	EventAction   = "action"
	EventDraft    = "draft"
	EventAnswer   = "callback_answer"
	EventUpdate   = "update"
	EventPoll     = "poll"
	EventConfirm  = "confirmed"
	EventCall     = "call"
	EventFault    = "fault"
	EventCut      = "cut"
)

// Event is something that happened.
type Event struct {
	// Kind is one of the Event constants.
	Kind string `json:"kind"`
	// Chat, Message and Update name what it happened to, where there is such.
	Chat    int64 `json:"chat,omitempty"`
	Message int64 `json:"message,omitempty"`
	Update  int64 `json:"update,omitempty"`
	// Action is the chat action; Text the kind of an update, the method of a call,
	// the effect of a fault, or the text of a callback's answer.
	Action string `json:"action,omitempty"`
	Text   string `json:"text,omitempty"`
	// Snapshot is the message after the event.
	Snapshot *Message `json:"snapshot,omitempty"`
	// Missed counts the events lost just before this one, because the subscriber
	// did not keep up.
	Missed int `json:"missed,omitempty"`
}

// watch is what those who look on are told. Guarded by Server.mu.
type watch struct {
	hub   *wire.Hub[Event]
	calls map[string]int
	cuts  int
}

// emit tells everyone who looks on. A message is shown as it is now.
func (s *Server) emit(e Event, c *chat, m *message) {
	s.hub.Changed()
	if !s.hub.Watched() {
		return
	}
	if m != nil {
		shown := m.observed(c)
		e.Snapshot = &shown
	}
	s.hub.Emit(func(missed int) Event {
		e.Missed = missed
		return e
	})
}

// Subscribe returns the events from now on. At most buffer of them wait; what does
// not fit is dropped and counted in the next one. The channel is closed by cancel,
// which must be called, and by [Server.Close].
func (s *Server) Subscribe(buffer int) (events <-chan Event, cancel func()) {
	return s.hub.Subscribe(buffer)
}

// maxMethods bounds the names counted, which a client could make up.
const maxMethods = 200

// count notes a call and the fault it met.
func (s *Server) count(name string, chat int64, f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.calls[name]; known || len(s.calls) < maxMethods {
		s.calls[name]++
	}
	s.emit(Event{Kind: EventCall, Chat: chat, Text: name}, nil, nil)
	if f != nil {
		s.emit(Event{Kind: EventFault, Chat: chat, Text: string(f.Effect)}, nil, nil)
	}
}

var _ http.Handler = (*Server)(nil)
