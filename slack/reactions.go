package slack

import (
	"encoding/json"
	"fmt"
	"strings"

	"oneclaw/bridge/chats"
)

// The events of reactions.
const (
	added   = "reaction_added"
	removed = "reaction_removed"
)

// isReaction reports whether an event of a type is about a reaction.
func isReaction(kind string) bool { return kind == added || kind == removed }

// reaction is something that a user said of a message with a reaction.
type reaction struct {
	User        string
	Channel, TS string
	Says        chats.Feedback
	// At is when, as Slack writes it.
	At string
	// Shared is set where the channel may be shared with other workspaces.
	Shared bool
}

// thumbs are the names of the reactions that say something, with what it says to add them and
// to take them back. The second of each is an alias.
var thumbs = map[string][2]chats.Feedback{
	"+1": {chats.Good, chats.NotGood}, "thumbsup": {chats.Good, chats.NotGood},
	"-1": {chats.Bad, chats.NotBad}, "thumbsdown": {chats.Bad, chats.NotBad},
}

// decodeReaction reads what a user thinks of a message of the bot's; nil for any other reaction.
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
	name, _, _ := strings.Cut(e.Name, "::") // a tone of the skin
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
