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

// Subscribe returns the events from now on. At most buffer events are queued; others are dropped, and
// the next event counts them. The channel is closed by cancel, which must be called, and by
// [Server.Close].
func (o *observer) Subscribe(buffer int) (events <-chan Event, cancel func()) {
	return o.state.world.hub.Subscribe(buffer)
}
