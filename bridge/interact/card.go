// Package interact asks users: it posts messages with buttons, stores them until they are closed, and
// calls handlers for presses ([Cards]). With cards [Gate] asks for approval of tool calls, and binds
// each decision to the exact arguments that the card shows; [Elicitation] asks the questions of running
// tools; [Panel] shows the groups of a conversation, their cost, and buttons to load one.
package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/toolgroups"
)

// DefaultAge is how long the buttons of a [Card] without Expires can be pressed.
const DefaultAge = 24 * time.Hour

// Limits of a [Card].
const (
	// MaxChoices bounds its buttons.
	MaxChoices = 60
	// MaxLabel bounds the label of a button, in characters.
	MaxLabel = 40
)

// Card is a message with buttons: a question, or a list to choose from. It is stored, so that its
// buttons survive a restart. A card without choices is a notice.
type Card struct {
	// Kind names its handler in [CardsConfig.Handlers].
	Kind string `json:"kind"`
	// Lead is Markdown of any length in front of the card, in messages of its own that are never
	// edited.
	Lead string `json:"lead,omitempty"`
	// Text is Markdown; it should fit into one message.
	Text string `json:"text"`
	// Foot is Markdown below the text until the card is closed.
	Foot string `json:"foot,omitempty"`
	// Exact says that the texts quote another user: commands in them are not rewritten for the
	// platform.
	Exact bool `json:"exact,omitempty"`
	// Choices are the rows of buttons.
	Choices [][]Choice `json:"choices,omitempty"`
	// Data is the handler's own.
	Data json.RawMessage `json:"data,omitempty"`
	// Expires is when it can no longer be pressed. The zero value means [DefaultAge] from now.
	Expires time.Time `json:"expires,omitzero"`
	// Of is the user whose words it shows, as platform:id: if they want to be forgotten, it is deleted.
	Of string `json:"of,omitempty"`
	// ReplyTo is the message that the card replies to; shown in shared chats.
	ReplyTo string `json:"reply_to,omitempty"`
}

// Choice is a button of a [Card].
type Choice struct {
	// Label is the button's plain text, at most [MaxLabel] characters.
	Label string `json:"label"`
	// Value is passed to the handler. It never leaves the bot.
	Value string            `json:"value"`
	Style chats.ButtonStyle `json:"style,omitempty"`
	// URL is the URL of the [chats.Button].
	URL string `json:"url,omitempty"`
}

// Press is the press of a button, or the expiry of a card without a decision.
type Press struct {
	// Scope is that of the user who pressed, with their current role. For an expired card it has only
	// the chat.
	toolgroups.Scope
	// Author is the user who pressed, for the audit.
	Author audit.Author
	// UserName is the platform's name of that user.
	UserName string
	// Place is the chat as a value.
	Place chats.Chat
	// Choice is the value of the button; empty if the user answers with a message, which is in Text.
	Choice string
	Text   string
	// Expired says that no user pressed in time: there is no Choice, and the card is closed whatever
	// the handler returns.
	Expired bool
	Card    Card

	Token string // of the card
}

// Message returns a message of a kind in the name of the user who pressed, in the chat of the card.
func (p Press) Message(kind chats.Kind, id string, at time.Time) chats.Message {
	return chats.Message{
		Chat: p.Place, ID: id, Kind: kind, User: strings.TrimPrefix(p.User, p.Place.Platform+":"),
		UserName: p.UserName, Direct: p.Direct, Time: at,
	}
}

// Result is a handler's result: the change of the card and the text for the user who pressed.
type Result struct {
	// Toast is shown only to the user who pressed: plain text of at most 200 characters. It answers a
	// message, unless it is empty because the card says enough.
	Toast string
	// Text replaces the card's text, unless it is empty.
	Text string
	// Close removes the buttons: nothing can be pressed any more.
	Close bool
	// Choices, if not nil, replace the buttons of a card that is not closed.
	Choices [][]Choice
	// Data, if not nil, replaces the card's Data.
	Data json.RawMessage
}

// Handler handles a press. Any user in the chat can press: the handler checks who did. The same press
// comes again after a crash, or if the store failed, and the expiry of a card may come together with a
// press: the first result that is written counts, and the handler's other effects must be idempotent.
// It should be quick. A press is retried for a few seconds after an error; an expired card is closed
// all the same.
type Handler func(ctx context.Context, press Press) (Result, error)

// ErrNoButtons is returned for a card with choices on a platform that is not a [chats.Editor].
var ErrNoButtons = errors.New("interact: the platform has no buttons")

// checkChoices rejects buttons that no platform could show.
func checkChoices(rows [][]Choice) error {
	all := slices.Concat(rows...)
	if len(all) > MaxChoices {
		return fmt.Errorf("card: %d buttons, at most %d are shown", len(all), MaxChoices)
	}
	for _, c := range all {
		if n := utf8.RuneCountInString(c.Label); n == 0 || n > MaxLabel {
			return fmt.Errorf("card: the label %q has %d characters, want 1 to %d", c.Label, n, MaxLabel)
		}
	}
	return nil
}
