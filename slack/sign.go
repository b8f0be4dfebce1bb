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
	// eyes is the name of the acknowledgement reaction.
	eyes = "eyes"
)

// Acknowledge implements [chats.Acknowledger]. It does nothing while messages to the channel, or
// reactions anywhere, wait for Slack's limits.
func (p *Platform) Acknowledge(ctx context.Context, chat chats.Chat, id string, on bool) error {
	method, change, done := addReaction, (*slack.Client).AddReactionContext, "already_reacted"
	if !on {
		method, change, done = removeReaction, (*slack.Client).RemoveReactionContext, "no_reaction"
	}
	if p.api.paces.Busy(request{method: postMessage, place: chat.ID}.key(), request{method: method}.key()) {
		return &chats.SendError{Outcome: chats.Later, RetryAfter: time.Second, Err: errors.New("slack: what is to be read goes first")}
	}
	err := p.api.call(ctx, method, func(ctx context.Context, api *slack.Client) error {
		return change(api, ctx, eyes, slack.NewRefToMessage(chat.ID, id))
	})
	if err == nil || refused(err, done) {
		return nil
	}
	return p.sendError(chats.Address{Chat: chat}, err)
}
