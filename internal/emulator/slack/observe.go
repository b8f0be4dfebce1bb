package slack

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/emulator/slack/blockkit"
	"oneclaw/internal/emulator/slack/delivery"
	"oneclaw/internal/emulator/wire"
)

// Message is a message as observers see it. Callers must not change its slices.
type Message struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	// Thread is the ts of the first message of the thread.
	Thread  string          `json:"thread,omitempty"`
	User    string          `json:"user"`
	FromBot bool            `json:"from_bot"`
	Date    time.Time       `json:"date"`
	Text    string          `json:"text"`
	Blocks  json.RawMessage `json:"blocks,omitempty"`
	// Shown is the visible text: that of the blocks, which may have Buttons in rows, or else Text.
	Shown   string     `json:"shown"`
	Buttons [][]Button `json:"buttons,omitempty"`
	Files   []File     `json:"files,omitempty"`
	// Mentions are the mentions in a message of the bot that notify people, such as <!channel> or
	// <@U1>.
	Mentions []string `json:"calls,omitempty"`
	// Ephemeral is the only user who sees the message, if it is ephemeral.
	Ephemeral string   `json:"ephemeral,omitempty"`
	Edits     []Edit   `json:"edits,omitempty"`
	Reactions []string `json:"reactions,omitempty"`
	Deleted   bool     `json:"deleted,omitempty"`
	// HasFeedback says whether the message has feedback buttons.
	HasFeedback bool `json:"judged,omitempty"`
	// IsStreaming says whether the message is an open stream, with Tasks and the service's stop button.
	IsStreaming bool   `json:"streams,omitempty"`
	Tasks       []Task `json:"tasks,omitempty"`
	// DroppedResponses counts the dropped responses to the calls that sent or edited the message.
	DroppedResponses int `json:"cut,omitempty"`
}

// Kinds of events.
const (
	EventMessage  = "message"
	eventEdit     = "edit"
	eventDelete   = "delete"
	eventReaction = "reaction"
	eventStatus   = "status"
	EventEnvelope = delivery.EventEnvelope
	eventAck      = delivery.EventAck
	eventLost     = delivery.EventLost
	eventSocket   = delivery.EventSocket
	eventCall     = wire.EventCall
	eventFault    = wire.EventFault
	eventCut      = "cut"
)

// event is an event of the emulator.
type event = wire.Event[string, Message]

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

// Edit is the state of a message before an edit.
type Edit struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// States of a [delivery.Envelope].
const (
	waiting   = delivery.Waiting
	delivered = delivery.Delivered
	acked     = delivery.Acked
	Lost      = delivery.Lost
)

// Status is the bot's status in a thread. It locks the input box until the bot clears it, a reply
// arrives, or two minutes have passed.
type Status struct {
	Channel string    `json:"channel"`
	Thread  string    `json:"thread"`
	Text    string    `json:"text"`
	At      time.Time `json:"at"`
}

// observedMessage returns a message as observers see it.
func (w *world) observedMessage(c *channel, m *message) Message {
	o := Message{
		Channel: c.id, TS: m.ts, User: m.user, FromBot: m.fromBot, Date: m.sent, Text: m.text, Blocks: m.blocks,
		Ephemeral: m.ephemeral, Edits: slices.Clone(m.edits), Reactions: slices.Clone(m.botReactions), Deleted: m.deleted, DroppedResponses: m.droppedResponses,
	}
	if m.parent != nil {
		o.Thread = m.parent.ts
	}
	o.Shown = m.text
	switch {
	case m.fromBot:
		o.Shown, o.Buttons, o.Mentions = blockkit.Render(m.text, m.blocks)
		if m.detectsBroadcasts && len(m.blocks) == 0 {
			o.Mentions = append(o.Mentions, blockkit.Broadcasts(m.text)...)
		}
	case len(m.blocks) > 0:
		o.Shown, _, _ = blockkit.Render(m.text, m.blocks)
	case len(m.pasted) > 0:
		table, _, _ := blockkit.Render("", m.pasted)
		o.Shown = strings.TrimSpace(m.text + "\n" + table)
	}
	o.HasFeedback = blockkit.HasFeedback(m.blocks)
	if o.IsStreaming = w.isStreaming(m); m.stream != nil {
		o.Tasks = slices.Clone(m.stream.tasks)
	}
	for _, f := range m.files {
		o.Files = append(o.Files, File{ID: f.id, Name: f.name, MIME: f.mime, Size: f.size, Data: f.data})
	}
	return o
}

// State is a view of the server. It is valid only inside the function that receives it, which must not
// call the server.
type State struct {
	delivery.State
	world *world
	api   *api
}

// channel returns a channel, or an empty one if it is unknown.
func (st State) channel(id string) *channel {
	if c := st.world.channels[id]; c != nil {
		return c
	}
	return &channel{}
}

// Channels returns the ids of the channels in the order of creation.
func (st State) Channels() []string { return slices.Clone(st.world.channelOrder) }

// Messages returns the messages of a channel in order, including replies, ephemeral and deleted
// ones.
func (st State) Messages(channel string) []Message {
	return st.filterMessages(channel, math.MaxInt, func(*message) bool { return true })
}

// Answers returns the messages of the bot in a channel that are not deleted.
func (st State) Answers(channel string) []Message {
	return st.filterMessages(channel, math.MaxInt, func(m *message) bool { return m.fromBot && !m.deleted })
}

// Thread returns a message and its replies.
func (st State) Thread(channel, ts string) []Message {
	return st.LastInThread(channel, ts, math.MaxInt)
}

// LastInThread returns the last n of [State.Thread].
func (st State) LastInThread(channel, ts string, n int) []Message {
	return st.filterMessages(channel, n, func(m *message) bool { return m.ts == ts || m.parent != nil && m.parent.ts == ts })
}

// filterMessages returns the last n messages of a channel that keep selects.
func (st State) filterMessages(id string, n int, keep func(*message) bool) (out []Message) {
	c := st.channel(id)
	for _, m := range slices.Backward(c.messages) {
		if len(out) == n {
			break
		}
		if keep(m) {
			out = append(out, st.world.observedMessage(c, m))
		}
	}
	slices.Reverse(out)
	return out
}

// CountAnswers returns the number of the bot's messages in a channel that are not deleted, in constant
// time. An empty channel means all channels.
func (st State) CountAnswers(channel string) int {
	if channel == "" {
		return st.world.answerCount
	}
	return st.channel(channel).answerCount
}

// Message returns the message with a ts.
func (st State) Message(channel, ts string) (Message, bool) {
	c := st.channel(channel)
	if c.byTS[ts] == nil {
		return Message{}, false
	}
	return st.world.observedMessage(c, c.byTS[ts]), true
}

// Status returns the current status of a thread.
func (st State) Status(channel, thread string) (Status, bool) {
	return st.world.currentStatus(st.channel(channel), thread)
}

// StatusCount returns the number of threads in all channels that have a status.
func (st State) StatusCount() int {
	n := 0
	for _, c := range st.world.channels {
		for thread := range c.statuses {
			if _, ok := st.world.currentStatus(c, thread); ok {
				n++
			}
		}
	}
	return n
}

// Statuses returns the statuses that the bot set and cleared in a channel, in order.
func (st State) Statuses(channel string) []Status {
	return slices.Clone(st.channel(channel).statusHistory)
}

// CallCount returns the number of calls of a method or of a name in [Fault], including refused calls.
func (st State) CallCount(method string) int { return st.world.hub.Calls()[method] }

// DroppedResponses returns the number of accepted calls whose response was dropped.
func (st State) DroppedResponses() int { return st.api.droppedResponses }

// Observer observes the actions of the app.
type Observer = wire.Observer[string, Message, State]

// errClosed is returned by [Server.WaitFor] when the server is closed.
var errClosed = errors.New("slack emulator: closed")
