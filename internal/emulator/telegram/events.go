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
	EventCall     = wire.EventCall
	EventFault    = wire.EventFault
	EventCut      = "cut"
	// EventWhisper is an ephemeral message, or a change of one.
	EventWhisper = "whisper"
)

// Event is something that happened.
type Event = wire.Event[int64, Message]

// emit tells everyone who looks on. A message is shown as it is now.
func (s *Server) emit(e Event, c *chat, m *message) {
	var look func() Message
	if m != nil {
		look = func() Message { return m.observed(c) }
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
