package slack

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
	EventStatus   = "status"
	EventEnvelope = "envelope"
	EventAck      = "ack"
	EventLost     = "lost"
	EventSocket   = "socket"
	EventCall     = wire.EventCall
	EventFault    = wire.EventFault
	EventCut      = "cut"
)

// Event is something that happened.
type Event = wire.Event[string, Message]

// emit tells everyone who looks on. A message is shown as it is now.
func (s *Server) emit(e Event, c *channel, m *message) {
	var look func() Message
	if m != nil {
		look = func() Message { return s.observed(c, m) }
	}
	s.hub.Emit(e, look)
}

// Subscribe returns the events from now on. At most buffer of them wait; what does
// not fit is dropped and counted in the next one. The channel is closed by cancel,
// which must be called, and by [Server.Close].
func (s *Server) Subscribe(buffer int) (events <-chan Event, cancel func()) {
	return s.hub.Subscribe(buffer)
}

var _ http.Handler = (*Server)(nil)
