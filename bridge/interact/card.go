// Package interact asks people: it posts messages with buttons, keeps them in the store until
// they are over, and has handlers decide what a press does ([Cards]). With cards [Gate] asks for
// approval of calls of tools, and binds each decision to the exact arguments that the card shows;
// [Elicitation] asks what a tool that runs wants to know; [Panel] shows the groups of a conversation,
// what they cost, and buttons to load one.
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

// DefaultAge is how long the buttons of a [Card] that names no other time can be pressed.
const DefaultAge = 24 * time.Hour

// Limits of a [Card].
const (
	// MaxChoices bounds its buttons.
	MaxChoices = 60
	// MaxLabel bounds the label of a button, in characters.
	MaxLabel = 40
)

// Card is a message with buttons: a question, or a list to choose from. The store keeps it,
// so that its buttons outlive the program. A card without choices is a notice.
type Card struct {
	// Kind names its handler in [Config.Handlers].
	Kind string `json:"kind"`
	// Lead is Markdown of any length that stands in front of the card, in messages of
	// its own that are never edited.
	Lead string `json:"lead,omitempty"`
	// Text is Markdown; it should fit into one message.
	Text string `json:"text"`
	// Foot is Markdown that stands under the text until the card is over.
	Foot string `json:"foot,omitempty"`
	// Exact says that the texts show what another person wrote: commands in them are not
	// spelled as people write them on the platform.
	Exact bool `json:"exact,omitempty"`
	// Choices are the rows of buttons.
	Choices [][]Choice `json:"choices,omitempty"`
	// Data is for the handler.
	Data json.RawMessage `json:"data,omitempty"`
	// Expires is until when it can be pressed. The zero value means [DefaultAge] from now.
	Expires time.Time `json:"expires,omitzero"`
	// Of is whose words it shows, as platform:id: when they want to be forgotten, it goes.
	Of string `json:"of,omitempty"`
	// ReplyTo is the message that the card is about; it shows in shared chats.
	ReplyTo string `json:"reply_to,omitempty"`
}

// Choice is a button of a [Card].
type Choice struct {
	// Label is what the button says: plain text of at most [MaxLabel] characters.
	Label string `json:"label"`
	// Value is what the handler is told. It never leaves the bot.
	Value string            `json:"value"`
	Style chats.ButtonStyle `json:"style,omitempty"`
	// URL is that of [chats.Button].
	URL string `json:"url,omitempty"`
}

// Press is the press of a button, or the end of a card that no user has decided.
type Press struct {
	// Scope is that of who pressed, with the role of this moment. Of an expired card it
	// has the chat alone.
	toolgroups.Scope
	// Author is who pressed, for the audit.
	Author audit.Author
	// UserName is what the platform calls who pressed.
	UserName string
	// Place is the chat as a value.
	Place chats.Chat
	// Choice is the value of the button; empty where the user answers with a message, which
	// says Text.
	Choice string
	Text   string
	// Expired says that no user pressed in time: there is no Choice, and the card is
	// closed whatever the handler returns.
	Expired bool
	Card    Card

	Token string // of the card
}

// Message is a message of a kind in the name of who pressed, in the chat of the card.
func (p Press) Message(kind chats.Kind, id string, at time.Time) chats.Message {
	return chats.Message{
		Chat: p.Place, ID: id, Kind: kind, User: strings.TrimPrefix(p.User, p.Place.Platform+":"),
		UserName: p.UserName, Direct: p.Direct, Time: at,
	}
}

// Result is what becomes of a card and what its presser is told.
type Result struct {
	// Toast is shown only to the user who pressed: plain text of at most 200
	// characters. To a message it is the answer; empty where the card says enough.
	Toast string
	// Text replaces the card's text, unless it is empty.
	Text string
	// Close takes the buttons away: nothing can be pressed any more.
	Close bool
	// Choices, if not nil, replace the buttons of a card that is not closed.
	Choices [][]Choice
	// Data, if not nil, replaces that of the card.
	Data json.RawMessage
}

// Handler decides what a press does. Any user in the chat can press: the handler looks who
// did. The same press comes again after a crash, or where the store had trouble, and the
// end of a card may come beside a press of that moment: the first result that is written
// counts, and what the handler does beside its result must bear repeating. It should be
// quick. A press is tried again for a few seconds after an error; a card ends all the same.
type Handler func(ctx context.Context, press Press) (Result, error)

// ErrNoButtons is returned for a card with choices on a platform that is no [chats.Editor].
var ErrNoButtons = errors.New("interact: the platform has no buttons")

// checkChoices refuses buttons that no platform could show.
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
