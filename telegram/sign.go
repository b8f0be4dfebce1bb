package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
)

const (
	// eyes is the acknowledgement reaction. A bot has one reaction to a message
	// (core.telegram.org/bots/api#setmessagereaction), and this is it.
	eyes = `[{"type":"emoji","emoji":"👀"}]`
	// signsKey precedes the id of a chat, for the rate limits of reactions there.
	signsKey = "sign "
	signGap  = 300 * time.Millisecond
)

// Acknowledge implements [chats.Acknowledger]. Reactions use what previews leave: it does nothing while
// messages to the chat wait for flood control. A rate limit of reactions says nothing about messages.
func (p *Platform) Acknowledge(ctx context.Context, chat chats.Chat, id string, on bool) error {
	if n, err := strconv.ParseInt(id, 10, 64); err != nil || n <= 0 || chat.Platform != Name {
		return &chats.SendError{Outcome: chats.Refused, Err: fmt.Errorf("telegram: sign: %q is no id of a message", id)}
	}
	limit := signsKey + chat.ID
	wait := time.Duration(0)
	if !p.pacer.idle(chat.ID) || p.pacer.paces.Busy(limit) {
		wait = chatGap
	}
	if wait = cmp.Or(wait, p.previews.Take(limit, signGap, beginnings)); wait > 0 {
		return &chats.SendError{Outcome: chats.Later, RetryAfter: wait, Err: errors.New("telegram: what is to be read goes first")}
	}
	reaction := "[]"
	if on {
		reaction = eyes
	}
	err := p.api.call(ctx, "setMessageReaction", tgbotapi.Params{"chat_id": chat.ID, "message_id": id, "reaction": reaction}, nil)
	if err == nil {
		return nil
	}
	ce, is := errors.AsType[*callError](err)
	if !is {
		return &chats.SendError{Outcome: chats.Unknown, Err: err}
	}
	if ce.code == http.StatusTooManyRequests {
		p.pacer.paces.Refused(limit, max(ce.retryAfter, noRetryAfter), signGap, maxGap)
	}
	out := &chats.SendError{Outcome: outcome(ce), RetryAfter: ce.retryAfter, Err: err}
	if ce.code == 0 && !ce.begun {
		out.Outcome = chats.Later
	}
	return out
}
