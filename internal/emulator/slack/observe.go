package slack

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"oneclaw/internal/emulator/slack/blockkit"
	"oneclaw/internal/emulator/slack/delivery"
	"oneclaw/internal/emulator/wire"
)

// Message is a message as an observer sees it. Slices and Data are not to be
// changed.
type Message struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	// Thread is the ts of the message whose thread this one stands in.
	Thread  string          `json:"thread,omitempty"`
	User    string          `json:"user"`
	FromBot bool            `json:"from_bot"`
	Date    time.Time       `json:"date"`
	Text    string          `json:"text"`
	Blocks  json.RawMessage `json:"blocks,omitempty"`
	// Shown is what people see: the text of the blocks where there are some, and only
	// then Buttons, in rows. Otherwise it is Text.
	Shown   string     `json:"shown"`
	Buttons [][]Button `json:"buttons,omitempty"`
	Files   []File     `json:"files,omitempty"`
	// Calls are the mentions in a message of the bot that notify people, such as
	// <!channel> or <@U1>.
	Calls []string `json:"calls,omitempty"`
	// Ephemeral is the only user who sees it.
	Ephemeral string   `json:"ephemeral,omitempty"`
	Edits     []Edit   `json:"edits,omitempty"`
	Reactions []string `json:"reactions,omitempty"`
	Deleted   bool     `json:"deleted,omitempty"`
	// Judged is true where it has buttons with which people judge it.
	Judged bool `json:"judged,omitempty"`
	// Streams is true while it grows, with the tasks that it shows and the service's own
	// button to stop.
	Streams bool   `json:"streams,omitempty"`
	Tasks   []Task `json:"tasks,omitempty"`
	// Cut counts how often the bot was not told that this message, or an edit of
	// it, was accepted.
	Cut int `json:"cut,omitempty"`
}

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

// File is a file of a message.
type File struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	MIME string `json:"mime"`
	Size int    `json:"size"`
	Data []byte `json:"-"`
}

// Button is a button under a message.
type Button = blockkit.Button

// Edit is what a message was before an edit.
type Edit struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Envelope is something sent to the app.
type Envelope = delivery.Envelope

// States of an [Envelope].
const (
	Waiting   = delivery.Waiting
	Delivered = delivery.Delivered
	Acked     = delivery.Acked
	Lost      = delivery.Lost
)

// Status is what the bot shows in a thread while it works. It locks the box where
// people write until it is cleared, by the bot, by a reply or by two minutes.
type Status struct {
	Channel string    `json:"channel"`
	Thread  string    `json:"thread"`
	Text    string    `json:"text"`
	At      time.Time `json:"at"`
}

// observed is a message as observers see it.
func (w *world) observed(c *channel, m *message) Message {
	o := Message{
		Channel: c.id, TS: m.ts, User: m.user, FromBot: m.bot, Date: m.sent, Text: m.text, Blocks: m.blocks,
		Ephemeral: m.ephemeral, Edits: slices.Clone(m.edits), Reactions: slices.Clone(m.react), Deleted: m.deleted, Cut: m.cut,
	}
	if m.parent != nil {
		o.Thread = m.parent.ts
	}
	o.Shown = m.text
	if m.bot {
		o.Shown, o.Buttons, o.Calls = blockkit.Shown(m.text, m.blocks)
		if m.loose && len(m.blocks) == 0 {
			o.Calls = append(o.Calls, blockkit.Broadcasts(m.text)...)
		}
	}
	o.Judged = blockkit.Judged(m.blocks)
	if o.Streams = w.streams(m); m.stream != nil {
		o.Tasks = slices.Clone(m.stream.tasks)
	}
	for _, f := range m.files {
		o.Files = append(o.Files, File{ID: f.id, Name: f.name, MIME: f.mime, Size: f.size, Data: f.data})
	}
	return o
}

// State is a look at the server while it stands still. It is valid only inside the
// function it is given to, which must not call the server.
type State struct {
	delivery.State
	world *world
	api   *api
}

// channel is a channel, or an empty one where there is none.
func (st State) channel(id string) *channel {
	if c := st.world.channels[id]; c != nil {
		return c
	}
	return &channel{}
}

// Channels lists the channels as they were made.
func (st State) Channels() []string { return slices.Clone(st.world.order) }

// Messages returns the messages of a channel in order, replies, ephemeral and
// deleted ones included.
func (st State) Messages(channel string) []Message {
	return st.pick(channel, func(*message) bool { return true })
}

// Answers returns the messages of the bot in a channel that are not deleted.
func (st State) Answers(channel string) []Message {
	return st.pick(channel, func(m *message) bool { return m.bot && !m.deleted })
}

// Thread returns a message and the replies to it.
func (st State) Thread(channel, ts string) []Message {
	return st.pick(channel, func(m *message) bool { return m.ts == ts || m.parent != nil && m.parent.ts == ts })
}

func (st State) pick(id string, keep func(*message) bool) []Message {
	c := st.channel(id)
	var out []Message
	for _, m := range c.messages {
		if keep(m) {
			out = append(out, st.world.observed(c, m))
		}
	}
	return out
}

// CountAnswers counts the messages of the bot in a channel that stand, at no cost.
// An empty channel means all channels.
func (st State) CountAnswers(channel string) int {
	if channel == "" {
		return st.world.answers
	}
	return st.channel(channel).answers
}

// Message returns one message.
func (st State) Message(channel, ts string) (Message, bool) {
	c := st.channel(channel)
	if c.byTS[ts] == nil {
		return Message{}, false
	}
	return st.world.observed(c, c.byTS[ts]), true
}

// Status returns the status that stands in a thread now.
func (st State) Status(channel, thread string) (Status, bool) {
	return st.world.status(st.channel(channel), thread)
}

// StatusCount counts the threads of all channels in which a status stands.
func (st State) StatusCount() int {
	n := 0
	for _, c := range st.world.channels {
		for thread := range c.statuses {
			if _, ok := st.world.status(c, thread); ok {
				n++
			}
		}
	}
	return n
}

// Statuses returns the statuses that the bot set and cleared in a channel, in order.
func (st State) Statuses(channel string) []Status {
	return slices.Clone(st.channel(channel).history)
}

// Calls counts the calls of a method, refused ones included; also those of the
// names that [Fault] knows.
func (st State) Calls(method string) int { return st.world.hub.Calls()[method] }

// Cuts counts the accepted calls whose answer was dropped.
func (st State) Cuts() int { return st.api.cuts }

// Observer shows what the app did. Each of its methods takes the lock.
type Observer struct {
	mu    *sync.Mutex
	hub   *wire.Hub[string, Message]
	state State
}

// View looks at the state.
func (o *Observer) View(look func(State)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	look(o.state)
}

// Messages is [State.Messages] of the present moment.
func (o *Observer) Messages(channel string) []Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state.Messages(channel)
}

// ErrClosed is returned by [Observer.WaitFor] when the server is closed.
var ErrClosed = errors.New("slack emulator: closed")

// WaitFor returns once cond holds, which it looks at after every change. It must
// not call the server. Where hundreds wait at once, one [Observer.Subscribe] is cheaper.
func (o *Observer) WaitFor(ctx context.Context, cond func(State) bool) error {
	return o.hub.WaitFor(ctx, func() bool { return cond(o.state) })
}

// Subscribe returns the events from now on. At most buffer of them wait; what does
// not fit is dropped and counted in the next one. The channel is closed by cancel,
// which must be called, and by [Server.Close].
func (o *Observer) Subscribe(buffer int) (events <-chan Event, cancel func()) {
	return o.hub.Subscribe(buffer)
}
