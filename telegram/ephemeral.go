package telegram

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"oneclaw/bridge/chats"
)

// editEphemeral is the method that edits an ephemeral message.
const editEphemeral = "editEphemeralMessageText"

// ephemeralPattern matches the id of an ephemeral message, which is unique per receiver.
var ephemeralPattern = regexp.MustCompile(`^e([1-9][0-9]*)u([1-9][0-9]*)$`)

func ephemeralID(ephemeral int64, user string) string {
	return "e" + strconv.FormatInt(ephemeral, 10) + "u" + user
}

// SendEphemeral implements [chats.EphemeralSender]. In a group that the bot administers, Telegram shows
// the message to one user alone. If the bot is not an administrator, or the server is too old,
// all members see it, like any message of a bot.
func (p *platform) SendEphemeral(ctx context.Context, to chats.Address, user string, part chats.Part) (string, error) {
	if err := p.prepareSend(ctx, to); err != nil {
		return "", err
	}
	d := &delivery{to: to, part: part, plain: part.Text == ""}
	// A negative id is a chat, in whose name a user writes. The direct messages of a channel are no group.
	if _, topic := splitID(to.Chat); !strings.HasPrefix(to.Chat.ID, "-") || strings.HasPrefix(user, "-") || topic != "" {
		return p.send(ctx, d)
	}
	knows, err := p.canSendEphemeral(ctx, to)
	switch {
	case err != nil:
		return "", err
	case !knows:
		return p.send(ctx, d)
	}
	var sent sentMessage
	err = p.sendWithFallback(d, func() error {
		params := d.params()
		params["ephemeral_message_parameters"] = `{"receiver_user_id":` + user + `}`
		params["receiver_user_id"] = user // read by 10.2; servers ignore unknown fields
		return p.api.call(ctx, sendMessage, params, &sent)
	})
	switch {
	case err == nil && sent.Ephemeral == 0:
		p.knowsEphemeral.Store(new(bool))
		p.log.Warn("telegram showed an ephemeral message to all users: ephemeral messages are sent as ordinary ones from now on", "chat", to.Chat.String())
		return sent.id()
	case err == nil:
		id := ephemeralID(sent.Ephemeral, user)
		p.noteDisplaced(d, id)
		return id, nil
	case lacksRight(err):
		p.log.Debug("telegram refuses ephemeral messages in this chat", "chat", to.Chat.String(), "err", err)
		return p.send(ctx, d)
	}
	return "", p.sendError(to, err)
}

// lacksRight reports whether Telegram refused an ephemeral message because the bot may show none in the chat. After
// another refusal, such as that the person has left, the others in the chat are not shown it instead.
func lacksRight(err error) bool {
	var ce *callError
	return isContentRefusal(err) && errors.As(err, &ce) && lacksRightPattern.MatchString(ce.description)
}

// lacksRightPattern matches the refusal of a bot that is no administrator, and Telegram's usual names of missing rights.
var lacksRightPattern = regexp.MustCompile(`MESSAGE_NOT_COMMAND|CHAT_ADMIN_REQUIRED|RIGHT_FORBIDDEN|not enough rights`)

// isContentRefusal reports whether Telegram refused a request because of its content, and not because
// the chat has moved.
func isContentRefusal(err error) bool {
	var ce *callError
	return errors.As(err, &ce) && ce.fromTelegram && ce.code == http.StatusBadRequest && ce.movedTo == 0
}

// canSendEphemeral asks the server, once, whether it supports ephemeral messages. A server that does not
// would ignore the receiver and show a message to all users. So the request shows nothing to any user:
// it is an edit without a message, which a server without the method refuses with another error.
func (p *platform) canSendEphemeral(ctx context.Context, to chats.Address) (bool, error) {
	if known := p.knowsEphemeral.Load(); known != nil {
		return *known, nil
	}
	err := p.api.call(ctx, editEphemeral, nil, nil)
	var ce *callError
	if known := errors.As(err, &ce); err != nil && (!known || ce.code != http.StatusNotFound && !isContentRefusal(err)) {
		failure := p.sendError(to, err)
		failure.Outage = failure.Outage || failure.Outcome == chats.Unknown
		failure.Outcome = chats.Later
		return false, failure
	}
	knows := ce == nil || ce.code != http.StatusNotFound // proxies and mocks accept anything they know
	p.knowsEphemeral.Store(&knows)
	return knows, nil
}
