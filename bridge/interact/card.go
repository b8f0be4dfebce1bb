// Package interact asks users: it posts messages with buttons, stores them until they are closed, and
// calls handlers for presses ([Cards]). [Gate] asks for approval of tool calls, and binds each decision
// to the exact arguments that the card shows. [Elicitation] asks the questions of running tools. [Panel]
// shows the tool groups of a conversation, their cost, and buttons to load one.
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
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// DefaultAge is how long the buttons of a [Card] without Expires can be pressed.
const DefaultAge = 24 * time.Hour

// Limits of a [Card].
const (
	// maxButtons is the maximum number of buttons.
	maxButtons = 60
	// MaxLabel is the maximum length of a button's label, in characters.
	MaxLabel = 40
)

// Card is a message with buttons: a question, or a list to choose from. It is stored, so that its
// buttons survive a restart. A card without choices is a notice.
type Card struct {
	// Kind names its handler in [CardsConfig.Handlers].
	Kind string `json:"kind"`
	// Lead is Markdown of any length in front of the card. It is sent in separate messages that are
	// never edited.
	Lead string `json:"lead,omitempty"`
	// Text is Markdown; it should fit into one message.
	Text string `json:"text"`
	// Footer is Markdown below the text until the card is closed.
	Footer string `json:"foot,omitempty"`
	// KeepCommands is set if the texts quote another user: commands in them are not rewritten for the
	// platform.
	KeepCommands bool `json:"exact,omitempty"`
	// Choices are the rows of buttons.
	Choices [][]Choice `json:"choices,omitempty"`
	// Data belongs to the handler.
	Data json.RawMessage `json:"data,omitempty"`
	// Expires is when the buttons stop working. The zero value means [DefaultAge] from now.
	Expires time.Time `json:"expires,omitzero"`
	// QuotedUser is the user whose words the card shows, as platform:id. If this user asks to be
	// forgotten, the card is deleted.
	QuotedUser string `json:"of,omitempty"`
	// AlsoQuoted are further users whose words the card shows. If one of them asks to be forgotten, the
	// card is deleted too.
	AlsoQuoted []string `json:"also_of,omitempty"`
	// ReplyTo is the message that the card replies to. Only shared chats show it.
	ReplyTo string `json:"reply_to,omitempty"`
	// Once says that the card is rather missing than shown twice, if a crash leaves open whether it arrived.
	Once bool `json:"once,omitempty"`
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
	// Reaction is the feedback that a reaction to the card has to be to count as a press of this button;
	// empty for a button that has to be pressed. Leave it empty for everything that holds for longer, or
	// that needs an administrator.
	Reaction chats.Feedback `json:"reaction,omitempty"`
}

// Press is the press of a button, a message that answers a card, or the end of a card without a
// decision.
type Press struct {
	// Scope is the scope of the user who pressed, with their current role. If Expired is set, it has
	// only the chat.
	toolgroups.Scope
	// Author is the user who pressed, for the audit log.
	Author audit.Author
	// UserName is that user's name on the platform.
	UserName string
	// ForChat is set if the card is for a chat in whose name somebody wrote, and the user who pressed administers
	// the chat of the card. Such a user presses for that sender.
	ForChat bool
	// Place is the chat of the scope as a [chats.Chat].
	Place chats.Chat
	// Choice is the value of the button; empty if the user answers with a message, which is in Text.
	Choice string
	Text   string
	// IsReply is set if that message is a reply to the card itself, and not one that may be about something else.
	IsReply bool
	// Foreign is set if that message holds anything that its sender did not write.
	Foreign bool
	// Expired is set if no user pressed in time, or if the card could not be shown. Choice is empty
	// then, and the card is closed whatever the handler returns.
	Expired bool
	Card    Card

	Token string // of the card; empty if Expired is set
}

// Message returns a message of the given kind from the user who pressed, in the chat of the card.
func (p Press) Message(kind chats.Kind, id string, at time.Time) chats.Message {
	return chats.Message{
		Chat: p.Place, ID: id, Kind: kind, User: strings.TrimPrefix(p.User, p.Place.Platform+":"),
		UserName: p.UserName, Direct: p.Direct, Time: at,
	}
}

// Result is a handler's result: the change of the card and the text for the user who pressed.
type Result struct {
	// Toast is shown only to the user who pressed: plain text of at most 200 characters. If the user
	// answered with a message, it is the reply, unless it is empty because the card says enough.
	Toast string
	// Text replaces the card's text, unless it is empty.
	Text string
	// Close closes the card and removes its buttons.
	Close bool
	// Choices, if not nil, replace the buttons of a card that is not closed.
	Choices [][]Choice
	// AlsoQuoted, if not nil, replaces the card's AlsoQuoted.
	AlsoQuoted []string
	// Data, if not nil, replaces the card's Data.
	Data json.RawMessage
	// Ops are written together with the change of the card, and not at all if another result counts. They
	// must not depend on the state of the store.
	Ops []storage.Op
}

// saysOnly reports whether a result changes nothing.
func (r Result) saysOnly() bool {
	return !r.Close && r.Text == "" && r.Choices == nil && r.Data == nil && r.AlsoQuoted == nil && r.Ops == nil
}

// Handler handles a press. Any user in the chat can press a button, so the handler checks who did. It
// may be called again for the same press after a crash or a failed write, and a card may expire while a
// press of it is handled. Only the first result that is written counts, so the handler's other effects
// must be idempotent. It should return quickly. A press is retried for a few seconds after an error. An
// expired card is closed even if its handler fails.
type Handler func(ctx context.Context, press Press) (Result, error)

// ErrNoButtons is returned for a card with choices on a platform that is not a [chats.Editor].
var ErrNoButtons = errors.New("interact: the platform has no buttons")

// checkChoices rejects buttons that no platform could show.
func checkChoices(rows [][]Choice) error {
	all := slices.Concat(rows...)
	if len(all) > maxButtons {
		return fmt.Errorf("card: %d buttons, at most %d are shown", len(all), maxButtons)
	}
	for _, c := range all {
		if n := utf8.RuneCountInString(c.Label); n == 0 || n > MaxLabel {
			return fmt.Errorf("card: the label %q has %d characters, want 1 to %d", c.Label, n, MaxLabel)
		}
	}
	return nil
}
