package telegram

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/wire"
)

// Types of the Bot API that observers use too.
type (
	// User is a person or a bot.
	User = botapi.User
	// Entity is a formatted or special part of a text.
	Entity = botapi.Entity
	// Contents are those of a message without words.
	Contents = botapi.Contents
	// Location is a point on the map.
	Location = botapi.Location
	// Venue is a place with a name.
	Venue = botapi.Venue
	// Contact is a person of an address book.
	Contact = botapi.Contact
	// Poll is a poll.
	Poll = botapi.Poll
	// PollOption is an answer of a poll.
	PollOption = botapi.PollOption
	// Sticker is a sticker.
	Sticker = botapi.Sticker
	// Button is a button of an inline keyboard.
	Button = botapi.Button
)

// Message is a message as observers see it. Callers must not change its slices.
type Message struct {
	Chat     int64     `json:"chat"`
	ID       int64     `json:"id"`
	Thread   int64     `json:"thread,omitempty"`
	From     int64     `json:"from"`
	FromBot  bool      `json:"from_bot"`
	Date     time.Time `json:"date"`
	Text     string    `json:"text"`
	HTML     string    `json:"html,omitempty"`
	Entities []Entity  `json:"entities,omitempty"`
	ReplyTo  int64     `json:"reply_to,omitempty"`
	// Forwarded is the name of the author of a forwarded message.
	Forwarded string     `json:"forwarded,omitempty"`
	Album     string     `json:"album,omitempty"`
	Buttons   [][]Button `json:"buttons,omitempty"`
	File      *File      `json:"file,omitempty"`
	// Contents are those of a user's message without words.
	Contents  *Contents `json:"contents,omitempty"`
	Edits     []Edit    `json:"edits,omitempty"`
	Reactions []string  `json:"reactions,omitempty"`
	Silent    bool      `json:"silent,omitempty"`
	Deleted   bool      `json:"deleted,omitempty"`
	// Receiver is the only user who sees an ephemeral message. Ephemeral is the message's own number.
	Receiver  int64 `json:"receiver,omitempty"`
	Ephemeral int64 `json:"ephemeral,omitempty"`
	// DroppedResponses counts the dropped responses to the calls that sent or edited the message.
	DroppedResponses int `json:"cut,omitempty"`
}

// File is a file of a message.
type File struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
	MIME string `json:"mime"`
	Size int    `json:"size"`
	Data []byte `json:"-"`
}

// Edit is the state of a message before an edit.
type Edit struct {
	At      time.Time  `json:"at"`
	Text    string     `json:"text"`
	Buttons [][]Button `json:"buttons,omitempty"`
}

// Action is a chat action such as typing.
type Action struct {
	Chat   int64     `json:"chat"`
	Thread int64     `json:"thread,omitempty"`
	Action string    `json:"action"`
	At     time.Time `json:"at"`
}

// Draft is a text that is streamed into a private chat.
type Draft struct {
	ID     int64     `json:"id"`
	Thread int64     `json:"thread,omitempty"`
	Text   string    `json:"text"`
	At     time.Time `json:"at"`
}

// Callback is a button press with the bot's answer.
type Callback struct {
	ID            string
	Chat, Message int64
	User          int64
	Data          string
	Answered      bool
	Text          string
	ShowAlert     bool

	pressedAt time.Time
}

// State is a view of the server. It is valid only inside the function that receives it, which must not
// call the server.
type State struct {
	world   *world
	updates *queue
	flood   *floodControl
}

// Chats returns the ids of the chats in the order of creation.
func (st State) Chats() []int64 { return slices.Clone(st.world.chatOrder) }

// Messages returns the messages of a chat in order, including deleted ones.
func (st State) Messages(chat int64) []Message {
	return st.filterMessages(chat, math.MaxInt, func(*message) bool { return true })
}

// Answers returns the messages of the bot in a chat that are not deleted.
func (st State) Answers(chat int64) []Message { return st.LastAnswers(chat, math.MaxInt) }

// LastAnswers returns the last n of [State.Answers].
func (st State) LastAnswers(chat int64, n int) []Message {
	return st.filterMessages(chat, n, func(m *message) bool { return m.from.IsBot && !m.deleted })
}

// filterMessages returns the last n messages of a chat that keep selects.
func (st State) filterMessages(chat int64, n int, keep func(*message) bool) (out []Message) {
	c := st.chat(chat)
	for _, m := range slices.Backward(c.messages) {
		if len(out) == n {
			break
		}
		if keep(m) {
			out = append(out, m.observedMessage(c))
		}
	}
	slices.Reverse(out)
	return out
}

// chat returns the chat with the given id, or an empty one if it is unknown.
func (st State) chat(id int64) *chat { return cmp.Or(st.world.chats[id], &chat{}) }

// CountAnswers returns the number of the bot's messages in a chat that are not deleted, in constant
// time. Chat 0 means all chats.
func (st State) CountAnswers(chat int64) int {
	if chat == 0 {
		return st.world.answerCount
	}
	return st.chat(chat).answerCount
}

// Message returns the message with the given id.
func (st State) Message(chat, id int64) (Message, bool) {
	c := st.chat(chat)
	if c.byID[id] == nil {
		return Message{}, false
	}
	return c.byID[id].observedMessage(c), true
}

// Actions returns the chat actions of a chat in order.
func (st State) Actions(chat int64) []Action {
	return slices.Clone(st.chat(chat).actions)
}

// Drafts returns the current drafts of a chat, by id.
func (st State) Drafts(chat int64) map[int64]Draft {
	return maps.Clone(st.chat(chat).drafts)
}

// Callback returns the button press with an id.
func (st State) Callback(id string) (Callback, bool) {
	q, ok := st.world.callbacks[id]
	if !ok {
		return Callback{}, false
	}
	return *q, true
}

// Callbacks returns the stored button presses, the oldest first.
func (st State) Callbacks() []Callback {
	list := make([]Callback, 0, len(st.world.callbackOrder))
	for _, id := range st.world.callbackOrder {
		list = append(list, *st.world.callbacks[id])
	}
	return list
}

// IsConfirmed reports whether an update was confirmed by an offset or delivered to a webhook.
func (st State) IsConfirmed(update int64) bool {
	return update > 0 && update <= st.updates.confirmed || st.updates.delivered[update]
}

// Webhook returns the URL of the webhook and its last error.
func (st State) Webhook() (address, lastError string) {
	return st.updates.webhook.URL, st.updates.webhook.LastErrorMessage
}

// PendingCount returns the number of unconfirmed updates.
func (st State) PendingCount() int { return len(st.updates.waiting) }

// PollCount returns the number of calls of getUpdates.
func (st State) PollCount() int { return st.updates.pollCount }

// IsPolling reports whether a call of getUpdates is waiting.
func (st State) IsPolling() bool { return st.updates.poll != nil }

// CallCount returns the number of calls of a method by its lower-case name, including refused calls.
func (st State) CallCount(method string) int { return st.world.hub.Calls()[method] }

// PenaltyAttempts returns the number of messages and edits during a penalty of flood control.
func (st State) PenaltyAttempts() int { return st.flood.penaltyAttempts }

// DroppedResponses returns the number of accepted calls whose response was dropped.
func (st State) DroppedResponses() int { return st.world.droppedResponses }

// Commands returns the commands of the default scope, as JSON.
func (st State) Commands() json.RawMessage { return slices.Clone(st.world.commands["default|{}|"]) }

// ChatCommands returns the commands of one chat's scope, as JSON, or nil if there are none.
func (st State) ChatCommands(chat int64) json.RawMessage {
	return slices.Clone(st.world.commands[fmt.Sprintf(`chat|{"chat_id":%d,"type":"chat"}|`, chat)])
}

// observer observes the state and the events.
type observer = wire.Observer[int64, Message, State]

// ErrClosed is returned by [Server.WaitFor] when the server is closed.
var ErrClosed = errors.New("telegram emulator: closed")
