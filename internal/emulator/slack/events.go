package slack

import (
	"oneclaw/internal/emulator/slack/delivery"
	"oneclaw/internal/emulator/wire"
)

// Kinds of events.
const (
	EventMessage  = "message"
	EventEdit     = "edit"
	EventDelete   = "delete"
	EventReaction = "reaction"
	EventStatus   = "status"
	EventEnvelope = delivery.EventEnvelope
	EventAck      = delivery.EventAck
	EventLost     = delivery.EventLost
	EventSocket   = delivery.EventSocket
	EventCall     = wire.EventCall
	EventFault    = wire.EventFault
	EventCut      = "cut"
)

// Event is something that happened.
type Event = wire.Event[string, Message]

// emit tells everyone who looks on. A message is shown as it is now.
func (w *world) emit(e Event, c *channel, m *message) {
	var look func() Message
	if m != nil {
		look = func() Message { return w.observed(c, m) }
	}
	w.hub.Emit(e, look)
}
