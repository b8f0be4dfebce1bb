package surface

import (
	"unicode/utf8"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

// Feedback is the type of the buttons with which people judge an answer
// (docs.slack.dev/reference/block-kit/block-elements/feedback-buttons-element).
const Feedback = "feedback_buttons"

// Thanks is what those are told who have judged.
const Thanks = "Thank you, I keep that with the answer."

// The values of the buttons.
const good, bad = "good", "bad"

// feedback stands for the buttons among what Slack may refuse the app.
const feedback = "context_actions"

// Judges reports whether buttons to judge may stand under a text, which has to fit into one
// section.
func (s *Surface) Judges(text string, section int) bool {
	return s.may(feedback) && text != "" && utf8.RuneCountInString(text) <= section
}

// NotJudged notes that Slack does not take the buttons.
func (s *Surface) NotJudged(err error) { s.lacks(feedback, err) }

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
func Says(value string) (chats.Opinion, bool) {
	switch value {
	case good:
		return chats.Good, true
	case bad:
		return chats.Bad, true
	}
	return "", false
}
