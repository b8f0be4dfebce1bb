package slack

import (
	"context"
	"errors"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

// postEphemeral is the method that posts for one person alone.
const postEphemeral = "chat.postEphemeral"

// SendEphemeral implements [chats.EphemeralSender]. Where the bot or the person is not in the channel, it
// answers the command instead, which only who gave it sees as well.
func (p *Platform) SendEphemeral(ctx context.Context, to chats.Address, user string, part chats.Part) (string, error) {
	if err := checkAddress(to); err != nil {
		return "", err
	}
	return sendWithFallback(ctx, p, to, part, func(plain bool) (string, error) {
		return p.api.sendEphemeral(ctx, to, user, part, plain)
	}, "not_in_channel", "channel_not_found", "user_not_in_channel")
}

// sendEphemeral posts a part for one person.
func (c *client) sendEphemeral(ctx context.Context, to chats.Address, user string, part chats.Part, plain bool) (string, error) {
	part.FeedbackButtons, part.Layout = false, nil // what passes is no answer to look back at
	options, _, err := options(nil, to, part, plain)
	if err != nil {
		return "", err
	}
	id, _ := slackID(user)
	var ts string
	err = c.call(ctx, postEphemeral, func(ctx context.Context, api *slack.Client) (err error) {
		ts, err = api.PostEphemeralContext(ctx, to.Chat.ID, id, options...)
		if err == nil && ts == "" {
			err = errors.New("the answer names no message")
		}
		return err
	})
	return ts, err
}
