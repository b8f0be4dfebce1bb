package chats

import (
	"strings"
	"time"
)

// Feedback is a user's new rating of one of the bot's messages, or the withdrawal of one. It is the text
// of a message of [KindFeedback].
type Feedback string

// Values of [Feedback].
const (
	FeedbackGood    Feedback = "good"
	FeedbackBad     Feedback = "bad"
	FeedbackNotGood Feedback = "not good"
	FeedbackNotBad  Feedback = "not bad"
)

// FeedbackOf returns what a reaction means; empty if it is no feedback.
func FeedbackOf(emoji string) Feedback {
	switch strings.TrimSuffix(emoji, "\ufe0f") { // without the variation selector
	case "👍", "✅", "❤":
		return FeedbackGood
	case "👎", "❌":
		return FeedbackBad
	}
	return ""
}

// Withdrawn returns the withdrawal of a rating.
func (f Feedback) Withdrawn() Feedback { return "not " + f }

// NewFeedback returns the message with which a platform reports a user's rating of the message with the
// id on, given at the time at. Platforms need not know whether the bot wrote that message, nor its
// thread. Repeating a report is harmless. If it was a reaction, the platform sets the Emoji too, and the
// UserName and Direct, as it may stand for a press of a button.
func NewFeedback(chat Chat, on, user string, what Feedback, at time.Time) Message {
	return Message{Chat: chat, ID: on, Kind: KindFeedback, User: user, TargetID: on, Text: string(what), Time: at}
}
