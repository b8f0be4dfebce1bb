package slack

import (
	"context"
	"fmt"

	"oneclaw/bridge/chats"
)

// memberJoined is the event of a user who joins a channel
// (docs.slack.dev/reference/events/member_joined_channel).
const memberJoined = "member_joined_channel"

// joinEvent is the event of the bot joining a channel.
type joinEvent struct {
	User    string `json:"user"`
	Channel string `json:"channel"`
}

// decodeJoin returns an empty intake if another user has joined.
func (s identity) decodeJoin(o eventWrapper) (intake, error) {
	var e joinEvent
	if _, err := decodeLoosely(o.Event, &e); err != nil {
		return intake{}, fmt.Errorf("decode event %s: %w", o.EventID, err)
	}
	if e.User != s.user || e.Channel == "" || isDirectID(e.Channel) {
		return intake{}, nil
	}
	return intake{joined: &e}, nil
}

// acceptJoin tells the inbox that the bot was added to a channel.
func (r *receiver) acceptJoin(ctx context.Context, e *joinEvent) error {
	host, ok := r.in.(chats.AddedInbox)
	if !ok || !r.serves(e.Channel, false) {
		return nil
	}
	if err := host.Added(ctx, chats.Chat{Platform: platformName, ID: e.Channel}); err != nil {
		return fmt.Errorf("slack: %w", err)
	}
	return nil
}
