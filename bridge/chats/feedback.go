package chats

import "time"

// Feedback is what a user thinks of one of the bot's messages from now on, or does not think
// any more: the text of a message of [KindFeedback].
type Feedback string

// The feedback.
const (
	Good    Feedback = "good"
	Bad     Feedback = "bad"
	NotGood Feedback = "not good"
	NotBad  Feedback = "not bad"
)

// NewFeedback is the message with which a platform says that a user thinks so of the bot's message
// with the id on, and when that was. Platforms need not know whose message it is, nor in which
// thread it stands; saying it again does no harm.
func NewFeedback(chat Chat, on, user string, what Feedback, at time.Time) Message {
	return Message{Chat: chat, ID: on, Kind: KindFeedback, User: user, On: on, Text: string(what), Time: at}
}
