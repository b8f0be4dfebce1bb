package telegram

import "net/http"

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

var _ http.Handler = (*Server)(nil)
