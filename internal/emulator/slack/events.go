package slack

import "net/http"

// Kinds of events.
const (
	EventMessage  = "message"
	EventEdit     = "edit"
	EventDelete   = "delete"
	EventReaction = "reaction"
	EventStatus   = "status"
	EventEnvelope = "envelope"
	EventAck      = "ack"
	EventLost     = "lost"
	EventSocket   = "socket"
	EventCall     = "call"
	EventFault    = "fault"
	EventCut      = "cut"
)

// Event is something that happened.
type Event struct {
	// Kind is one of the Event constants.
	Kind string `json:"kind"`
	// Channel, Message and Envelope name what it happened to, where there is such.
	Channel  string `json:"channel,omitempty"`
	Message  string `json:"message,omitempty"`
	Envelope string `json:"envelope,omitempty"`
	// Text is the status, the kind of an envelope, the payload of an ack, the method
	// of a call, the effect of a fault, or open or closed.
	Text string `json:"text,omitempty"`
	// Snapshot is the message after the event.
	Snapshot *Message `json:"snapshot,omitempty"`
	// Missed counts the events lost just before this one, because the subscriber
	// did not keep up.
	Missed int `json:"missed,omitempty"`
}

// emit tells everyone who looks on. A message is shown as it is now.
func (s *Server) emit(e Event, c *channel, m *message) {
	s.hub.Changed()
	if !s.hub.Watched() {
		return
	}
	if m != nil {
		shown := s.observed(c, m)
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
