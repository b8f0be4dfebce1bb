package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
)

// topicNotice is shown with an answer whose topic no longer accepts messages.
const topicNotice = "↪ Posted here because its topic is gone or closed."

type delivery struct {
	to        chats.Address
	part      chats.Part
	plain     bool // there is no HTML, or it was refused
	topicGone bool // the topic no longer accepts messages
}

// Send sends one part. If Telegram refuses the HTML, Send sends the plain text at once. If the topic is
// gone or closed, it sends to the chat, with a line about that. It retries nothing else.
func (p *platform) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	if err := p.prepareSend(ctx, to); err != nil {
		return "", err
	}
	return p.send(ctx, &delivery{to: to, part: part, plain: part.Text == ""})
}

func (p *platform) send(ctx context.Context, d *delivery) (string, error) {
	var sent sentMessage
	err := p.sendWithFallback(d, func() error { return p.api.call(ctx, sendMessage, d.params(), &sent) })
	if err != nil {
		return "", p.sendError(d.to, err)
	}
	id, err := sent.id()
	if err == nil {
		p.noteDisplaced(d, id)
	}
	return id, err
}

// noteDisplaced records that a message was sent outside of its topic, for the line in its edits.
func (p *platform) noteDisplaced(d *delivery, id string) {
	if d.topicGone {
		p.displaced.Put(messageKey{d.to.Chat.ID, id}, true, cache.Forever)
	}
}

const sendMessage = "sendMessage"

// sentMessage has the fields of a sent message that are used.
type sentMessage struct {
	ID        int64 `json:"message_id"`
	Ephemeral int64 `json:"ephemeral_message_id"`
}

func (s sentMessage) id() (string, error) {
	if s.ID == 0 {
		return "", &chats.SendError{Err: errors.New("telegram: sendMessage: the response has no message id")}
	}
	return strconv.FormatInt(s.ID, 10), nil
}

// prepareSend checks an address, and waits until a message may be sent there.
func (p *platform) prepareSend(ctx context.Context, to chats.Address) error {
	if err := checkAddress(to); err != nil {
		return &chats.SendError{Outcome: chats.Refused, Err: err}
	}
	return p.admit(ctx, to.Chat)
}

// sendWithFallback makes a request, and repeats it without the HTML or the topic that Telegram refused.
func (p *platform) sendWithFallback(d *delivery, request func() error) error {
	for {
		err := request()
		switch {
		case !d.plain && (isBadRequest(err, "entities") || isBadRequest(err, "entity")):
			p.log.Warn("markup refused: sending plain text", "chat", d.to.Chat.String(), "err", err)
			d.plain = true
		case !d.topicGone && d.to.Chat.Thread != "" && (isBadRequest(err, "message thread not found") || isBadRequest(err, "topic_deleted") || isBadRequest(err, "topic_closed")):
			p.log.Warn("topic gone: sending to the chat", "chat", d.to.Chat.String(), "err", err)
			d.topicGone = true
		default:
			return err
		}
	}
}

func checkAddress(to chats.Address) error {
	chat, topic := splitID(to.Chat)
	if _, err := strconv.ParseInt(chat, 10, 64); err != nil || to.Chat.Platform != platformName {
		return fmt.Errorf("telegram: %s is not one of telegram's chats", to.Chat)
	}
	if _, err := strconv.ParseInt(topic, 10, 64); err != nil && topic != "" {
		return fmt.Errorf("telegram: %s names no topic of telegram's", to.Chat)
	}
	if to.Chat.Thread == "" {
		return nil
	}
	if _, err := strconv.ParseInt(to.Chat.Thread, 10, 64); err != nil {
		return fmt.Errorf("telegram: %s names no topic of telegram's", to.Chat)
	}
	return nil
}

func (d delivery) params() tgbotapi.Params {
	params := d.addressParams()
	d.setBody(params)
	return params
}

func (d delivery) setBody(params tgbotapi.Params) {
	params["link_preview_options"] = `{"is_disabled":true}`
	if k := keyboard(d.part.Buttons); k != "" {
		params["reply_markup"] = k
	}
	if d.plain {
		params["text"] = d.text(cmp.Or(d.part.Plain, d.part.Text), plainLine)
	} else {
		params["text"] = d.text(d.part.Text, htmlLine)
		params["parse_mode"] = "HTML"
	}
}

// text returns the body with its additional lines.
func (d delivery) text(body string, line func(string) string) string {
	if d.topicGone {
		body = line(topicNotice) + "\n\n" + body
	}
	if d.part.Note != "" {
		body += "\n\n" + line(d.part.Note)
	}
	if d.part.Repeat {
		body += "\n\n" + line(chats.RepeatNotice)
	}
	return strings.TrimLeft(body, "\n")
}

func plainLine(s string) string { return s }

func htmlLine(s string) string { return "<i>" + html.EscapeString(s) + "</i>" }

// sendError returns the outcome of a failed send, and adapts the rate of the chat.
func (p *platform) sendError(to chats.Address, err error) *chats.SendError {
	p.adaptRate(to.Chat, err)
	out := &chats.SendError{Outcome: chats.Unknown, Err: err}
	var ce *callError
	if !errors.As(err, &ce) {
		return out
	}
	out.RetryAfter = ce.retryAfter
	switch {
	case ce.code == 0 && !ce.requestBegun:
		out.Outcome, out.Outage = chats.Later, true
	case ce.movedTo != 0:
		out.Outcome, out.MovedTo = chats.Later, strconv.FormatInt(ce.movedTo, 10)
	case isTokenError(err):
		p.log.Error("telegram refuses the token: check TELEGRAM_BOT_TOKEN", "chat", to.Chat.String(), "err", err)
		out.Outcome, out.Outage = chats.Later, true
	default:
		out.Outcome = outcome(ce)
		out.Unreachable = out.Outcome == chats.Refused && isUnreachable(ce)
		out.ContentRefused = out.Outcome == chats.Refused && isAboutContent(ce)
		out.Outage = out.Outcome == chats.Later && ce.code != http.StatusTooManyRequests
	}
	return out
}

// aboutDestination are words of refusals that no other form of a message would change: they are about the chat,
// about the bot's rights in it, or about the message to be edited.
var aboutDestination = []string{
	"chat not found", "group is deactivated", "group chat was", "peer_id_invalid", "channel_private", "user_is_blocked", "input_user_deactivated",
	"rights", "write_forbidden", "chat_admin_required", "_forbidden", "chat_restricted", "thread not found", "topic", "monoforum", "message to edit not found",
	"message can't be edited", "message_id_invalid", "message identifier", "there is no text in the message",
}

// nothingTaken are words of refusals by chats that take no text from the bot at all (td #1544, telegram-bot-api #863).
var nothingTaken = []string{
	"chat not found", "rights to send text messages", "no rights to send a message", "chat_write_forbidden", "chat_send_plain_forbidden", "chat_restricted", "group is deactivated", "group chat was deactivated",
}

// isUnreachable reports whether Telegram refused a message because the bot is blocked in a chat, may not write there, or
// is not in it.
func isUnreachable(ce *callError) bool {
	words := strings.ToLower(ce.description)
	return ce.fromTelegram && (ce.code == http.StatusForbidden || ce.code == http.StatusBadRequest &&
		slices.ContainsFunc(nothingTaken, func(about string) bool { return strings.Contains(words, about) }))
}

// isAboutContent reports whether Telegram refused what was sent, not where it was sent.
func isAboutContent(ce *callError) bool {
	if ce.code == http.StatusRequestEntityTooLarge {
		return true
	}
	words := strings.ToLower(ce.description)
	return ce.fromTelegram && ce.code == http.StatusBadRequest &&
		!slices.ContainsFunc(aboutDestination, func(about string) bool { return strings.Contains(words, about) })
}

// outcome returns the outcome of a failed call by its status. A server error does not show what was
// done by then. A gateway that refuses in words of its own has not forwarded the request.
func outcome(ce *callError) chats.Outcome {
	switch {
	case ce.code == http.StatusTooManyRequests:
		return chats.Later
	case ce.code == http.StatusRequestEntityTooLarge:
		return chats.Refused
	case ce.code >= http.StatusInternalServerError:
		return chats.Unknown
	case ce.code >= 400 && ce.fromTelegram:
		return chats.Refused
	case ce.code >= 300:
		return chats.Later
	}
	return chats.Unknown
}

// SetTyping shows for about five seconds that the bot is working; off does nothing, as Telegram clears
// the status by itself. SetTyping sends nothing while messages to the chat wait for flood control.
func (p *platform) SetTyping(ctx context.Context, to chats.Address, on bool) error {
	if !on {
		return nil
	}
	id, topic := splitID(to.Chat)
	if err := checkAddress(to); err != nil || !p.pacer.isIdle(id) || topic != "" {
		return err // channels and their direct messages show no status (core.telegram.org/bots/api#sendchataction)
	}
	params := tgbotapi.Params{"chat_id": id, "action": "typing"}
	switch {
	case to.Chat.Thread != "":
		params["message_thread_id"] = to.Chat.Thread
	case p.isForum(id):
		// A message to the general topic names no topic, but a chat action has to.
		params["message_thread_id"] = "1"
	}
	err := p.api.call(ctx, "sendChatAction", params, nil)
	p.adaptRate(to.Chat, err)
	return err
}

func (p *platform) isForum(chatID string) bool {
	id, err := strconv.ParseInt(chatID, 10, 64)
	return err == nil && p.forums.Has(id)
}
