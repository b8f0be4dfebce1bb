package slack

import (
	"context"
	"errors"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

const (
	addReaction    = "reactions.add"
	removeReaction = "reactions.remove"
	// eyesEmoji is the name of the acknowledgement reaction.
	eyesEmoji = "eyes"
)

// Acknowledge implements [chats.Acknowledger]. While messages to the channel, or reactions anywhere, wait
// because of Slack's rate limits, it sends nothing and returns an error with [chats.Later].
func (p *platform) Acknowledge(ctx context.Context, chat chats.Chat, id string, on bool) error {
	method, change, done := addReaction, (*slack.Client).AddReactionContext, "already_reacted"
	if !on {
		method, change, done = removeReaction, (*slack.Client).RemoveReactionContext, "no_reaction"
	}
	if p.api.pacer.Busy(apiCall{method: postMessage, channel: chat.ID}.key(), apiCall{method: method}.key()) {
		return &chats.SendError{Outcome: chats.Later, RetryAfter: time.Second, Err: errors.New("slack: messages take precedence over reactions")}
	}
	err := p.api.call(ctx, method, func(ctx context.Context, api *slack.Client) error {
		return change(api, ctx, eyesEmoji, slack.NewRefToMessage(chat.ID, id))
	})
	if err == nil || hasErrorCode(err, done) {
		return nil
	}
	return p.sendError(chats.Address{Chat: chat}, err)
}
