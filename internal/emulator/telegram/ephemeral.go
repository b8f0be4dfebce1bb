package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneclaw/internal/emulator/telegram/markup"
	"oneclaw/internal/emulator/wire"
)

// ephemeralWindow is how long after a button press its callback query permits an ephemeral message
// (core.telegram.org/bots/api#ephemeral-messages-and-commands).
const ephemeralWindow = 15 * time.Second

// ephemeralParameters are those of Bot API 10.3
// (core.telegram.org/bots/api#ephemeralmessageparameters). In 10.2 they were parameters of the
// message itself.
type ephemeralParameters struct {
	ReceiverUserID  int64  `json:"receiver_user_id"`
	CallbackQueryID string `json:"callback_query_id"`
}

// setReceiver makes a message ephemeral if the call's parameters say so, and reports whether it did. An
// administrator may send one to any member of a group at any time, other bots only after a button press
// or an ephemeral command. The name of that refusal is from kurigram's pull request 337; when the
// service gives it, and the other refusals, are assumed.
func (a *api) setReceiver(p *wire.Params, c *chat, m *message) (bool, *apiError) {
	var to ephemeralParameters
	switch a.cfg.Version {
	case Version100:
	case Version102:
		to = ephemeralParameters{ReceiverUserID: p.Int("receiver_user_id"), CallbackQueryID: p.Text("callback_query_id")}
	default:
		if _, err := p.DecodeJSON("ephemeral_message_parameters", &to); err != nil {
			return false, badRequest("can't parse ephemeral message parameters JSON object") // assumed
		}
	}
	if to.ReceiverUserID == 0 {
		return false, nil
	}
	status := c.members[to.ReceiverUserID]
	switch {
	case c.kind == Private:
		return false, badRequest("CHAT_ID_INVALID") // assumed
	case a.world.users[to.ReceiverUserID] == nil, status == "", status == left, status == Kicked:
		return false, badRequest("USER_NOT_PARTICIPANT") // assumed
	}
	q := a.world.callbacks[to.CallbackQueryID]
	if asked := q != nil && q.User == to.ReceiverUserID && a.world.now().Sub(q.pressedAt) <= ephemeralWindow; !asked && !c.botAdmin {
		return false, badRequest("MESSAGE_NOT_COMMAND") // assumed
	}
	m.receiver = a.world.users[to.ReceiverUserID]
	return true, nil
}

// maxEphemeral bounds the stored ephemeral messages of a chat.
const maxEphemeral = 100

// addEphemeral adds an ephemeral message to a chat. Its message_id is 0.
func (w *world) addEphemeral(c *chat, m *message) {
	w.ephemeralCount++
	m.ephemeral, m.date = w.ephemeralCount, w.now()
	c.ephemeral = append(c.ephemeral, m)
	c.ephemeral = c.ephemeral[max(0, len(c.ephemeral)-maxEphemeral):]
	w.emit(event{Kind: eventEphemeral, Chat: c.id}, c, m)
}

// findEphemeral returns the ephemeral message with an id that the receiver sees, or nil.
func (c *chat) findEphemeral(id, receiver int64) *message {
	i := slices.IndexFunc(c.ephemeral, func(m *message) bool { return m.ephemeral == id && m.receiver.ID == receiver })
	if i < 0 {
		return nil
	}
	return c.ephemeral[i]
}

// editEphemeralMessageText follows core.telegram.org/bots/api#editephemeralmessagetext. Its
// refusals are assumed to be those of editMessageText.
func editEphemeralMessageText(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	body, keys, err := a.parseNewText(p)
	if err != nil {
		return nil, err
	}
	c, err := a.findChat(p, true)
	if err != nil {
		return nil, err
	}
	m := c.findEphemeral(p.Int("ephemeral_message_id"), p.Int("receiver_user_id"))
	if m == nil {
		return nil, badRequest("message to edit not found") // assumed
	}
	if err := checkText(body); err != nil {
		return nil, err
	}
	if _, err := a.edit(c, m, body, keys); err != nil {
		return nil, err
	}
	return true, nil
}

// Ephemeral returns the ephemeral messages of a chat, in order.
func (st State) Ephemeral(chat int64) []Message {
	c := st.chat(chat)
	var out []Message
	for _, m := range c.ephemeral {
		out = append(out, m.observedMessage(c))
	}
	return out
}

// ReplyEphemeral replies to an ephemeral message, as its receiver. The bot alone sees the reply: TDLib's sendEphemeralMessage
// "sends an ephemeral message that will be received only by one bot". The update's form is that of an ephemeral command.
func (p *people) ReplyEphemeral(chatID, ephemeral, userID int64, text string, a *Attachment) (Sent, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c, u, err := p.world.findWriter(chatID, userID)
	if err != nil {
		return Sent{}, err
	}
	to := c.findEphemeral(ephemeral, userID)
	if to == nil {
		return Sent{}, errors.New("telegram emulator: the user does not see this ephemeral message")
	}
	m := &message{from: *u, receiver: &p.world.bot, thread: to.thread, replyTo: to, body: markup.NewText(text)}
	if a != nil {
		m.file = p.world.files.add(cmp.Or(a.Kind, KindDocument), a.Name, a.MIME, slices.Clone(a.Data), a.Size)
	}
	p.world.addEphemeral(c, m)
	return p.notify(c, m, "message"), nil
}

// PressEphemeral presses a button of an ephemeral message, as its receiver.
func (p *people) PressEphemeral(chatID, ephemeral, userID int64, data string) (Sent, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c, u, err := p.world.findWriter(chatID, userID)
	if err != nil {
		return Sent{}, err
	}
	m := c.findEphemeral(ephemeral, userID)
	if m == nil {
		return Sent{}, errors.New("telegram emulator: the user does not see this ephemeral message")
	}
	if !m.markup.HasButton(data) {
		return Sent{}, fmt.Errorf("telegram emulator: ephemeral message %d has no button with data %q", ephemeral, data)
	}
	return p.handlePress(c, u, m, data), nil
}
