package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"oneclaw/internal/emulator/telegram/botapi"
)

// Types that observers share with the JSON.
type (
	// User is a person or a bot.
	User = botapi.User
	// Entity is a formatted or special part of a text.
	Entity = botapi.Entity
	// Button is a button of an inline keyboard.
	Button = botapi.Button
)

// Message is a message as an observer sees it. Do not change slices and Data.
type Message struct {
	Chat      int64      `json:"chat"`
	ID        int64      `json:"id"`
	Thread    int64      `json:"thread,omitempty"`
	From      int64      `json:"from"`
	FromBot   bool       `json:"from_bot"`
	Date      time.Time  `json:"date"`
	Text      string     `json:"text"`
	HTML      string     `json:"html,omitempty"`
	Entities  []Entity   `json:"entities,omitempty"`
	ReplyTo   int64      `json:"reply_to,omitempty"`
	Album     string     `json:"album,omitempty"`
	Buttons   [][]Button `json:"buttons,omitempty"`
	File      *File      `json:"file,omitempty"`
	Edits     []Edit     `json:"edits,omitempty"`
	Reactions []string   `json:"reactions,omitempty"`
	Silent    bool       `json:"silent,omitempty"`
	Deleted   bool       `json:"deleted,omitempty"`
	// Receiver is the only user who sees an ephemeral message, Ephemeral its number.
	Receiver  int64 `json:"receiver,omitempty"`
	Ephemeral int64 `json:"ephemeral,omitempty"`
	// Cut counts the dropped responses to the bot's call for this message, or an edit of it.
	Cut int `json:"cut,omitempty"`
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

// Edit is a message before an edit.
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
	Alert         bool

	at time.Time
}

// State is a view of the server, only valid inside the function it is passed to, which must not
// call the server.
type State struct {
	world   *world
	updates *queue
	flood   *flood
}

// Chats lists the chats in the order of creation.
func (st State) Chats() []int64 { return slices.Clone(st.world.order) }

// Messages returns the messages of a chat in order, including deleted ones.
func (st State) Messages(chat int64) []Message {
	return st.pick(chat, func(*message) bool { return true })
}

// Answers returns the messages of the bot in a chat that are not deleted.
func (st State) Answers(chat int64) []Message {
	return st.pick(chat, func(m *message) bool { return m.from.IsBot && !m.deleted })
}

func (st State) pick(chat int64, keep func(*message) bool) []Message {
	c := st.chat(chat)
	var out []Message
	for _, m := range c.messages {
		if keep(m) {
			out = append(out, m.observed(c))
		}
	}
	return out
}

// chat returns the chat with an id, or an empty one.
func (st State) chat(id int64) *chat { return cmp.Or(st.world.chats[id], &chat{}) }

// CountAnswers counts the bot's messages in a chat that are not deleted, in constant time. Chat
// 0 means all chats.
func (st State) CountAnswers(chat int64) int {
	if chat == 0 {
		return st.world.answers
	}
	return st.chat(chat).answers
}

// Message returns one message.
func (st State) Message(chat, id int64) (Message, bool) {
	c := st.chat(chat)
	if c.byID[id] == nil {
		return Message{}, false
	}
	return c.byID[id].observed(c), true
}

// Actions returns the chat actions of a chat in order.
func (st State) Actions(chat int64) []Action {
	return slices.Clone(st.chat(chat).actions)
}

// Drafts returns the current drafts of a chat, by id.
func (st State) Drafts(chat int64) map[int64]Draft {
	return maps.Clone(st.chat(chat).drafts)
}

// Callback returns a button press.
func (st State) Callback(id string) (Callback, bool) {
	q, ok := st.world.callbacks[id]
	if !ok {
		return Callback{}, false
	}
	return *q, true
}

// Callbacks returns the stored button presses, oldest first.
func (st State) Callbacks() []Callback {
	list := make([]Callback, 0, len(st.world.callbackID))
	for _, id := range st.world.callbackID {
		list = append(list, *st.world.callbacks[id])
	}
	return list
}

// Confirmed reports whether an update was confirmed by an offset or delivered to a webhook.
func (st State) Confirmed(update int64) bool {
	return update > 0 && update <= st.updates.confirmed || st.updates.delivered[update]
}

// Webhook returns the webhook's address and its last error.
func (st State) Webhook() (address, lastError string) {
	return st.updates.webhook.URL, st.updates.webhook.Error
}

// Pending counts the unconfirmed updates.
func (st State) Pending() int { return len(st.updates.waiting) }

// Polls counts the calls of getUpdates.
func (st State) Polls() int { return st.updates.polls }

// Polling reports whether a getUpdates is waiting.
func (st State) Polling() bool { return st.updates.poll != nil }

// Calls counts the calls of a method by its lower-case name, including refused ones.
func (st State) Calls(method string) int { return st.world.hub.Calls()[method] }

// Early counts the messages and edits during a penalty of flood control.
func (st State) Early() int { return st.flood.early }

// Cuts counts the accepted calls whose response was dropped.
func (st State) Cuts() int { return st.world.cuts }

// Commands returns the commands set for the default scope, as JSON.
func (st State) Commands() json.RawMessage { return slices.Clone(st.world.commands["default|{}|"]) }

// CommandsIn returns the commands set for one chat, as JSON; nil if none are.
func (st State) CommandsIn(chat int64) json.RawMessage {
	return slices.Clone(st.world.commands[fmt.Sprintf(`chat|{"chat_id":%d,"type":"chat"}|`, chat)])
}

// observer shows the state and the events.
type observer struct{ state State }

// View looks at the state.
func (o *observer) View(look func(State)) {
	o.state.world.mu.Lock()
	defer o.state.world.mu.Unlock()
	look(o.state)
}

// Messages is [State.Messages] now.
func (o *observer) Messages(chat int64) []Message {
	o.state.world.mu.Lock()
	defer o.state.world.mu.Unlock()
	return o.state.Messages(chat)
}

// ErrClosed is returned by [Server.WaitFor] when the server is closed.
var ErrClosed = errors.New("telegram emulator: closed")

// WaitFor returns once cond holds, which it checks after every change. cond must not call the
// server. With hundreds of waiters, one [Server.Subscribe] is cheaper.
func (o *observer) WaitFor(ctx context.Context, cond func(State) bool) error {
	return o.state.world.hub.WaitFor(ctx, func() bool { return cond(o.state) })
}
