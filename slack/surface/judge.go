package surface

import (
	"unicode/utf8"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

// FeedbackButtons is the type of the buttons with which people judge an answer
// (docs.slack.dev/reference/block-kit/block-elements/feedback-buttons-element).
const FeedbackButtons = "feedback_buttons"

// Thanks is what those are told who have judged.
const Thanks = "Thank you, I keep that with the answer."

// The values of the buttons.
const good, bad = "good", "bad"

// Feedback stands for the buttons among what Slack may refuse the app, and Layouts for tables and
// code in blocks of their own.
const (
	Feedback = "context_actions"
	Layouts  = "table and markdown blocks"
)

// Judges reports whether buttons to judge may stand under a text, which has to fit into one
// section.
func (s *Surface) Judges(text string, section int) bool {
	return s.may(Feedback) && text != "" && utf8.RuneCountInString(text) <= section
}

// LaysOut reports whether tables and code may stand in blocks of their own: of any app, until
// Slack refuses them.
func (s *Surface) LaysOut() bool { return s.may(Layouts) }

// Judging is the block with the buttons.
func Judging() slack.Block {
	button := func(label, value, about string) *slack.FeedbackButton {
		return &slack.FeedbackButton{
			Text: slack.NewTextBlockObject(slack.PlainTextType, label, false, false), Value: value, AccessibilityLabel: about,
		}
	}
	return slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement(
		"judge", button("Good", good, "This answer was good"), button("Bad", bad, "This answer was bad")))
}

// Says is what the value of a button means.
func Says(value string) (chats.Feedback, bool) {
	switch value {
	case good:
		return chats.Good, true
	case bad:
		return chats.Bad, true
	}
	return "", false
}
