package slack

import (
	"context"
	"errors"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

// postEphemeral is the method that posts a message that only one user sees.
const postEphemeral = "chat.postEphemeral"

// SendEphemeral implements [chats.EphemeralSender]. If the bot or the user is not in the channel, it
// responds to the command instead, which only its user sees as well.
func (p *platform) SendEphemeral(ctx context.Context, to chats.Address, user string, part chats.Part) (string, error) {
	if err := checkAddress(to); err != nil {
		return "", err
	}
	return sendWithFallback(ctx, p, to, part, func(plain bool) (string, error) {
		return p.api.sendEphemeral(ctx, to, user, part, plain)
	}, "not_in_channel", "channel_not_found", "user_not_in_channel")
}

// sendEphemeral posts a part that only one user sees.
func (c *client) sendEphemeral(ctx context.Context, to chats.Address, user string, part chats.Part, plain bool) (string, error) {
	part.FeedbackButtons, part.Layout = false, nil // ephemeral messages need neither
	options, _, err := options(nil, to, part, plain)
	if err != nil {
		return "", err
	}
	id, _ := slackID(user)
	var ts string
	err = c.call(ctx, postEphemeral, func(ctx context.Context, api *slack.Client) (err error) {
		ts, err = api.PostEphemeralContext(ctx, to.Chat.ID, id, options...)
		if err == nil && ts == "" {
			err = errors.New("the response has no message id")
		}
		return err
	})
	return ts, err
}
