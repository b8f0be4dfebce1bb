package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"oneclaw/bridge/chats"
)

// Types of reaction events.
const (
	reactionAdded   = "reaction_added"
	reactionRemoved = "reaction_removed"
)

// isReaction reports whether an event type is about a reaction.
func isReaction(kind string) bool { return kind == reactionAdded || kind == reactionRemoved }

// reaction is a user's feedback on a message with a reaction.
type reaction struct {
	User        string
	Channel, TS string
	Feedback    chats.Feedback
	Emoji       string
	// EventTS is its time, as a ts.
	EventTS string
	// Shared is set if the channel may be shared with other workspaces.
	Shared bool
}

// emojis are the names of the reactions that are feedback.
var emojis = map[string]string{
	"+1": "👍", "thumbsup": "👍", "white_check_mark": "✅", "heart": "❤",
	"-1": "👎", "thumbsdown": "👎", "x": "❌",
}

// ReportsReactions implements [chats.ReactionReporter].
func (p *platform) ReportsReactions(context.Context, chats.Chat) bool {
	me := p.me.Load()
	return me != nil && me.seesReactions
}

// decodeReaction decodes a reaction to one of the bot's messages that is feedback. It returns nil for other reactions.
func decodeReaction(raw []byte, bot string) (*reaction, error) {
	var e struct {
		Type   string `json:"type"`
		User   string `json:"user"`
		Name   string `json:"reaction"`
		Author string `json:"item_user"`
		TS     string `json:"event_ts"`
		Item   struct {
			Type    string `json:"type"`
			Channel string `json:"channel"`
			TS      string `json:"ts"`
		} `json:"item"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, fmt.Errorf("decode reaction: %w", err)
	}
	name, _, _ := strings.Cut(e.Name, "::") // skin tone
	emoji := emojis[name]
	if emoji == "" || e.Item.Type != "message" || e.Item.Channel == "" || e.Item.TS == "" || e.User == "" || e.User == bot || e.Author != bot {
		return nil, nil
	}
	r := &reaction{User: e.User, Channel: e.Item.Channel, TS: e.Item.TS, Feedback: chats.FeedbackOf(emoji), Emoji: emoji, EventTS: e.TS}
	if e.Type == reactionRemoved {
		r.Feedback = r.Feedback.Withdrawn()
	}
	return r, nil
}

// convertReaction converts a reaction to a message.
func (r *receiver) convertReaction(ctx context.Context, in *reaction) *chats.Message {
	user := r.self.userID(in.User, r.lookUpTeam(ctx, in.User, in.Shared), in.Shared)
	m := chats.NewFeedback(chats.Chat{Platform: platformName, ID: in.Channel}, in.TS, user, in.Feedback, parseTS(in.EventTS))
	m.Emoji, m.UserName, m.Direct = in.Emoji, r.nameLookup(ctx)(in.User), isDirectID(in.Channel)
	return &m
}
