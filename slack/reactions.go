package slack

import (
	"encoding/json"
	"fmt"
	"strings"

	"oneclaw/bridge/chats"
)

// Types of reaction events.
const (
	added   = "reaction_added"
	removed = "reaction_removed"
)

// isReaction reports whether an event type is about a reaction.
func isReaction(kind string) bool { return kind == added || kind == removed }

// reaction is a user's rating of a message by a reaction.
type reaction struct {
	User        string
	Channel, TS string
	Says        chats.Feedback
	// At is its time, as Slack writes it.
	At string
	// Shared says that the channel may be shared with other workspaces.
	Shared bool
}

// thumbs maps the reactions that are ratings to the feedback of adding and of removing them. The second
// name of each is an alias.
var thumbs = map[string][2]chats.Feedback{
	"+1": {chats.Good, chats.NotGood}, "thumbsup": {chats.Good, chats.NotGood},
	"-1": {chats.Bad, chats.NotBad}, "thumbsdown": {chats.Bad, chats.NotBad},
}

// decodeReaction decodes a rating of one of the bot's messages; nil for any other reaction.
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
	says, is := thumbs[name]
	if !is || e.Item.Type != "message" || e.Item.Channel == "" || e.Item.TS == "" || e.User == "" || e.User == bot || e.Author != bot {
		return nil, nil
	}
	r := &reaction{User: e.User, Channel: e.Item.Channel, TS: e.Item.TS, Says: says[0], At: e.TS}
	if e.Type == removed {
		r.Says = says[1]
	}
	return r, nil
}
