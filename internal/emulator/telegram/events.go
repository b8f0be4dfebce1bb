package telegram

import "oneclaw/internal/emulator/wire"

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
	// EventEphemeral is a new or changed ephemeral message.
	EventEphemeral = "ephemeral"
)

// Event is an event of the emulator.
type Event = wire.Event[int64, Message]

// emit sends an event to the observers, with the current state of the message, if any.
func (w *world) emit(e Event, c *chat, m *message) {
	var look func() Message
	if m != nil {
		look = func() Message { return m.observedMessage(c) }
	}
	w.hub.Emit(e, look)
}
