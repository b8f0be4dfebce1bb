package slack

import (
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

// reaction is a user's rating of a message with a reaction.
type reaction struct {
	User        string
	Channel, TS string
	Feedback    chats.Feedback
	// EventTS is its time, as a ts.
	EventTS string
	// Shared is set if the channel may be shared with other workspaces.
	Shared bool
}

// ratings maps the reactions that are ratings to the feedback of adding and of removing them. The
// second name of each is an alias.
var ratings = map[string][2]chats.Feedback{
	"+1": {chats.FeedbackGood, chats.FeedbackNotGood}, "thumbsup": {chats.FeedbackGood, chats.FeedbackNotGood},
	"-1": {chats.FeedbackBad, chats.FeedbackNotBad}, "thumbsdown": {chats.FeedbackBad, chats.FeedbackNotBad},
}

// decodeReaction decodes a rating of one of the bot's messages. It returns nil for other reactions.
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
	says, is := ratings[name]
	if !is || e.Item.Type != "message" || e.Item.Channel == "" || e.Item.TS == "" || e.User == "" || e.User == bot || e.Author != bot {
		return nil, nil
	}
	r := &reaction{User: e.User, Channel: e.Item.Channel, TS: e.Item.TS, Feedback: says[0], EventTS: e.TS}
	if e.Type == reactionRemoved {
		r.Feedback = says[1]
	}
	return r, nil
}
