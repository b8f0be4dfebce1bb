package surface

import (
	"unicode/utf8"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

// FeedbackButtons is the type of the buttons that rate an answer
// (docs.slack.dev/reference/block-kit/block-elements/feedback-buttons-element).
const FeedbackButtons = "feedback_buttons"

// Thanks answers a rating.
const Thanks = "Thank you, I keep that with the answer."

// Values of the buttons.
const good, bad = "good", "bad"

// Names for what Slack may refuse: Feedback for the buttons, Layouts for tables and code in blocks of
// their own.
const (
	Feedback = "context_actions"
	Layouts  = "table and markdown blocks"
)

// Judges reports whether feedback buttons may follow a text, which has to fit into one section.
func (s *Surface) Judges(text string, section int) bool {
	return s.may(Feedback) && text != "" && utf8.RuneCountInString(text) <= section
}

// LaysOut reports whether tables and code may be in blocks of their own: in any app, until Slack
// refuses them.
func (s *Surface) LaysOut() bool { return s.may(Layouts) }

// Judging returns the block with the buttons.
func Judging() slack.Block {
	button := func(label, value, about string) *slack.FeedbackButton {
		return &slack.FeedbackButton{
			Text: slack.NewTextBlockObject(slack.PlainTextType, label, false, false), Value: value, AccessibilityLabel: about,
		}
	}
	return slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement(
		"judge", button("Good", good, "This answer was good"), button("Bad", bad, "This answer was bad")))
}

// Says returns the meaning of a button's value.
func Says(value string) (chats.Feedback, bool) {
	switch value {
	case good:
		return chats.Good, true
	case bad:
		return chats.Bad, true
	}
	return "", false
}
