package surface

import (
	"unicode/utf8"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

// FeedbackButtons is the type of the buttons that rate an answer
// (docs.slack.dev/reference/block-kit/block-elements/feedback-buttons-element).
const FeedbackButtons = "feedback_buttons"

// FeedbackThanks is the answer to a rating.
const FeedbackThanks = "Thank you, I keep that with the answer."

// Values of the buttons.
const good, bad = "good", "bad"

// Names of features that Slack may refuse: FeatureFeedback for the feedback buttons, FeatureLayouts for
// tables and code in their own blocks.
const (
	FeatureFeedback = "context_actions"
	FeatureLayouts  = "table and markdown blocks"
)

// CanRate reports whether feedback buttons may follow a text, which has to fit into one section.
func (s *Surface) CanRate(text string, section int) bool {
	return s.canUse(FeatureFeedback) && text != "" && utf8.RuneCountInString(text) <= section
}

// CanUseLayouts reports whether tables and code may be in their own blocks: in any app, until Slack
// refuses them.
func (s *Surface) CanUseLayouts() bool { return s.canUse(FeatureLayouts) }

// FeedbackBlock returns the block with the feedback buttons.
func FeedbackBlock() slack.Block {
	button := func(label, value, about string) *slack.FeedbackButton {
		return &slack.FeedbackButton{
			Text: slack.NewTextBlockObject(slack.PlainTextType, label, false, false), Value: value, AccessibilityLabel: about,
		}
	}
	return slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement(
		"judge", button("Good", good, "This answer was good"), button("Bad", bad, "This answer was bad")))
}

// ParseFeedback returns the meaning of a button's value.
func ParseFeedback(value string) (chats.Feedback, bool) {
	switch value {
	case good:
		return chats.FeedbackGood, true
	case bad:
		return chats.FeedbackBad, true
	}
	return "", false
}
