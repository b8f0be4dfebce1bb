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
	// eyesReaction is the acknowledgement reaction. A bot can have only one reaction to a message
	// (core.telegram.org/bots/api#setmessagereaction).
	eyesReaction = `[{"type":"emoji","emoji":"👀"}]`
	// reactionKeyPrefix precedes the id of a chat in the keys of the rate limits of reactions.
	reactionKeyPrefix = "sign "
	// reactionGap is the least time between two reactions in a chat.
	reactionGap = 300 * time.Millisecond
)

// Acknowledge implements [chats.Acknowledger]. Reactions use the rate that messages and previews leave
// unused: without room, and while messages to the chat wait for flood control, it sends nothing and
// returns an error with [chats.Later]. The limits of reactions do not delay messages.
func (p *platform) Acknowledge(ctx context.Context, chat chats.Chat, id string, on bool) error {
	if n, err := strconv.ParseInt(id, 10, 64); err != nil || n <= 0 || chat.Platform != platformName {
		return &chats.SendError{Outcome: chats.Refused, Err: fmt.Errorf("telegram: react: %q is no id of a message", id)}
	}
	limit := reactionKeyPrefix + chatID(chat)
	wait := time.Duration(0)
	if !p.pacer.isIdle(chatID(chat)) || p.pacer.limits.Busy(limit) {
		wait = chatGap
	}
	if wait = cmp.Or(wait, p.previewLimiter.Take(limit, reactionGap, reservedBeginnings)); wait > 0 {
		return &chats.SendError{Outcome: chats.Later, RetryAfter: wait, Err: errors.New("telegram: messages take precedence over reactions")}
	}
	reaction := "[]"
	if on {
		reaction = eyesReaction
	}
	err := p.api.call(ctx, "setMessageReaction", tgbotapi.Params{"chat_id": chatID(chat), "message_id": id, "reaction": reaction}, nil)
	if err == nil {
		return nil
	}
	ce, is := errors.AsType[*callError](err)
	if !is {
		return &chats.SendError{Outcome: chats.Unknown, Err: err}
	}
	if ce.code == http.StatusTooManyRequests {
		p.pacer.limits.RecordRefusal(limit, max(ce.retryAfter, noRetryAfter), reactionGap, maxGap)
	}
	out := &chats.SendError{Outcome: outcome(ce), RetryAfter: ce.retryAfter, Err: err}
	if ce.code == 0 && !ce.requestBegun {
		out.Outcome = chats.Later
	}
	return out
}
