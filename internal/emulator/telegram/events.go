package telegram

import "oneclaw/internal/emulator/wire"

// Kinds of events.
const (
	EventMessage  = "message"
	eventEdit     = "edit"
	eventDelete   = "delete"
	eventReaction = "reaction"
	eventAction   = "action"
	eventDraft    = "draft"
	eventAnswer   = "callback_answer"
	EventUpdate   = "update"
	eventPoll     = "poll"
	eventConfirm  = "confirmed"
	eventCall     = wire.EventCall
	eventFault    = wire.EventFault
	eventCut      = "cut"
	// eventEphemeral is a new or changed ephemeral message.
	eventEphemeral = "ephemeral"
)

// event is an event of the emulator.
type event = wire.Event[int64, Message]

// emit sends an event to the observers, with the current state of the message, if any.
func (w *world) emit(e event, c *chat, m *message) {
	var look func() Message
	if m != nil {
		look = func() Message { return m.observedMessage(c) }
	}
	w.hub.Emit(e, look)
}
