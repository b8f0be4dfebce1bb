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

// What is the same in JSON as for those who look on.
type (
	// User is a person or a bot.
	User = botapi.User
	// Entity is a formatted or special part of a text.
	Entity = botapi.Entity
	// Button is a button of an inline keyboard.
	Button = botapi.Button
)

// Message is a message as an observer sees it. Slices and Data are not to be
// changed.
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
	// Receiver is who alone sees an ephemeral message, Ephemeral the number of it.
	Receiver  int64 `json:"receiver,omitempty"`
	Ephemeral int64 `json:"ephemeral,omitempty"`
	// Cut counts how often the bot was not told that this message, or an edit of
	// it, was accepted.
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

// Edit is what a message was before an edit.
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

// Draft is a text that streams into a private chat.
type Draft struct {
	ID     int64     `json:"id"`
	Thread int64     `json:"thread,omitempty"`
	Text   string    `json:"text"`
	At     time.Time `json:"at"`
}

// Callback is a press of a button and what the bot answered.
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

// State is a look at the server while it stands still. It is valid only inside the
// function it is given to, which must not call the server.
type State struct {
	world   *world
	updates *queue
	flood   *flood
}

// Chats lists the chats as they were made.
func (st State) Chats() []int64 { return slices.Clone(st.world.order) }

// Messages returns the messages of a chat in order, deleted ones included.
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

// chat is one of that id, or one in which nothing has happened.
func (st State) chat(id int64) *chat { return cmp.Or(st.world.chats[id], &chat{}) }

// CountAnswers counts the messages of the bot in a chat that stand, at no cost. Chat
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

// Drafts returns the drafts that are live in a chat, by id.
func (st State) Drafts(chat int64) map[int64]Draft {
	return maps.Clone(st.chat(chat).drafts)
}

// Callback returns a press of a button.
func (st State) Callback(id string) (Callback, bool) {
	q, ok := st.world.callbacks[id]
	if !ok {
		return Callback{}, false
	}
	return *q, true
}

// Callbacks returns the presses of buttons that are remembered, oldest first.
func (st State) Callbacks() []Callback {
	list := make([]Callback, 0, len(st.world.callbackID))
	for _, id := range st.world.callbackID {
		list = append(list, *st.world.callbacks[id])
	}
	return list
}

// Confirmed says whether the offset has moved past an update, or a webhook has taken it.
func (st State) Confirmed(update int64) bool {
	return update > 0 && update <= st.updates.confirmed || st.updates.delivered[update]
}

// Webhook is the address that is posted the updates, and what its last error was.
func (st State) Webhook() (address, lastError string) {
	return st.updates.webhook.URL, st.updates.webhook.Error
}

// Pending counts the updates that are not confirmed.
func (st State) Pending() int { return len(st.updates.waiting) }

// Polls counts the calls of getUpdates.
func (st State) Polls() int { return st.updates.polls }

// Polling says whether a getUpdates waits now.
func (st State) Polling() bool { return st.updates.poll != nil }

// Calls counts the calls of a method by its lower-case name, refused ones included.
func (st State) Calls(method string) int { return st.world.hub.Calls()[method] }

// Early counts the messages and edits that came before a penalty of flood control was
// over.
func (st State) Early() int { return st.flood.early }

// Cuts counts the accepted calls whose answer was dropped.
func (st State) Cuts() int { return st.world.cuts }

// Commands returns the commands set for the default scope, as JSON.
func (st State) Commands() json.RawMessage { return slices.Clone(st.world.commands["default|{}|"]) }

// CommandsIn returns the commands set for one chat, as JSON; nil where none are.
func (st State) CommandsIn(chat int64) json.RawMessage {
	return slices.Clone(st.world.commands[fmt.Sprintf(`chat|{"chat_id":%d,"type":"chat"}|`, chat)])
}

// observer shows what there is and what happens.
type observer struct{ state State }

// View looks at the state.
func (o *observer) View(look func(State)) {
	o.state.world.mu.Lock()
	defer o.state.world.mu.Unlock()
	look(o.state)
}

// Messages is [State.Messages] of the present moment.
func (o *observer) Messages(chat int64) []Message {
	o.state.world.mu.Lock()
	defer o.state.world.mu.Unlock()
	return o.state.Messages(chat)
}

// ErrClosed is returned by [Server.WaitFor] when the server is closed.
var ErrClosed = errors.New("telegram emulator: closed")

// WaitFor returns once cond holds, which it looks at after every change. It must
// not call the server. Where hundreds wait at once, one [Server.Subscribe] is cheaper.
func (o *observer) WaitFor(ctx context.Context, cond func(State) bool) error {
	return o.state.world.hub.WaitFor(ctx, func() bool { return cond(o.state) })
}
