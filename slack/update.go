package slack

import (
	"encoding/json"
	"errors"
)

// Slack's objects, with only the fields that are used, so that changes to other fields cannot make an
// event undecodable.

// eventWrapper wraps an event of the Events API.
type eventWrapper struct {
	Type          string          `json:"type"`
	TeamID        string          `json:"team_id"`
	ContextTeamID string          `json:"context_team_id"`
	Shared        bool            `json:"is_ext_shared_channel"`
	EventID       string          `json:"event_id"`
	Challenge     string          `json:"challenge"`
	Event         json.RawMessage `json:"event"`
	// Authorizations name the user of an event that does not.
	Authorizations []struct {
		UserID string `json:"user_id"`
		IsBot  bool   `json:"is_bot"`
	} `json:"authorizations"`
}

// event is an inner event: a message, a mention, or a change of a message.
type event struct {
	message
	Channel         string   `json:"channel"`
	ChannelType     string   `json:"channel_type"`
	Message         *message `json:"message"`
	PreviousMessage *message `json:"previous_message"`

	shared   bool // with other workspaces
	threaded bool // in direct chats each message begins a thread
}

type message struct {
	Type         string        `json:"type"`
	Subtype      string        `json:"subtype"`
	User         string        `json:"user"`
	BotID        string        `json:"bot_id"`
	Text         string        `json:"text"`
	TS           string        `json:"ts"`
	ThreadTS     string        `json:"thread_ts"`
	ParentUserID string        `json:"parent_user_id"`
	Files        attachedFiles `json:"files"`
	// Blocks are read by package blocks.
	Blocks json.RawMessage `json:"blocks"`
	// Username is the bot's name in this message, Profile has its usual name.
	Username string     `json:"username"`
	Profile  botProfile `json:"bot_profile"`
	// Attachments are added by Slack and others; see quoteReader.
	Attachments json.RawMessage `json:"attachments"`
	// Workspaces of the sender.
	Team       string `json:"team"`
	UserTeam   string `json:"user_team"`
	SourceTeam string `json:"source_team"`
	// AppContext is what the sender looked at, in a direct message to an app with the agent view.
	AppContext *appContext `json:"app_context"`

	damaged bool // a field has another type than Slack documents
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

// typeOnly decodes only the type of an event, which decides whether the rest is decoded.
type typeOnly struct {
	Type string `json:"type"`
}

// decodeLoosely decodes JSON into v. A field of another type than the one of v stays empty: for that, one
// part of a message must not lose the whole. damaged reports that there was one.
func decodeLoosely(data []byte, v any) (damaged bool, err error) {
	err = json.Unmarshal(data, v)
	if _, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return true, nil // the rest was decoded
	}
	return false, err
}
