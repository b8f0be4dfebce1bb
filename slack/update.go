package slack

import (
	"encoding/json"
)

// These are the parts of Slack's objects that matter here. Decoding no more than is
// needed means that what else may change cannot make an event unreadable.

// outer wraps an event of the Events API.
type outer struct {
	Type      string          `json:"type"`
	TeamID    string          `json:"team_id"`
	Context   string          `json:"context_team_id"`
	Shared    bool            `json:"is_ext_shared_channel"`
	EventID   string          `json:"event_id"`
	Challenge string          `json:"challenge"`
	Event     json.RawMessage `json:"event"`
}

// event is an inner event: a message, a mention, or a change of a message.
type event struct {
	message
	Channel     string   `json:"channel"`
	ChannelType string   `json:"channel_type"`
	Message     *message `json:"message"`
	Previous    *message `json:"previous_message"`

	shared   bool // with other workspaces
	threaded bool // each message begins a thread, where the conversation is direct
}

type message struct {
	Type     string         `json:"type"`
	Subtype  string         `json:"subtype"`
	User     string         `json:"user"`
	BotID    string         `json:"bot_id"`
	Text     string         `json:"text"`
	TS       string         `json:"ts"`
	ThreadTS string         `json:"thread_ts"`
	Parent   string         `json:"parent_user_id"`
	Files    []attachedFile `json:"files"`
	// Username is what a bot calls itself in this message, Profile what it is called elsewhere.
	Username string     `json:"username"`
	Profile  botProfile `json:"bot_profile"`
	// Attachments are what Slack and others have added; see the package quoted.
	Attachments json.RawMessage `json:"attachments"`
	// Workspaces of who wrote it.
	Team       string `json:"team"`
	UserTeam   string `json:"user_team"`
	SourceTeam string `json:"source_team"`
}

type botProfile struct {
	Name string `json:"name"`
}

type command struct {
	TeamID      string `json:"team_id"`
	ChannelID   string `json:"channel_id"`
	UserID      string `json:"user_id"`
	Text        string `json:"text"`
	ResponseURL string `json:"response_url"`
	TriggerID   string `json:"trigger_id"`
}

// kindOf decodes alone the type of an inner event, which decides whether the rest
// has to decode.
type kindOf struct {
	Type string `json:"type"`
}
