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

// emit tells the observers. A message is shown as it is now.
func (w *world) emit(e Event, c *chat, m *message) {
	var look func() Message
	if m != nil {
		look = func() Message { return m.observed(c) }
	}
	w.hub.Emit(e, look)
}

// Subscribe returns the events from now on. At most buffer of them wait; others are dropped and
// counted in the next one. The channel is closed by cancel, which must be called, and by
// [Server.Close].
func (o *observer) Subscribe(buffer int) (events <-chan Event, cancel func()) {
	return o.state.world.hub.Subscribe(buffer)
}
