package chats

import "time"

// Feedback is a user's new rating of one of the bot's messages, or its withdrawal: the text of a
// message of [KindFeedback].
type Feedback string

// Values of [Feedback].
const (
	Good    Feedback = "good"
	Bad     Feedback = "bad"
	NotGood Feedback = "not good"
	NotBad  Feedback = "not bad"
)

// NewFeedback returns the message with which a platform reports a user's rating of the message with the
// id on, and its time. Platforms need not know whose message that is, nor its thread; a repetition does
// no harm.
func NewFeedback(chat Chat, on, user string, what Feedback, at time.Time) Message {
	return Message{Chat: chat, ID: on, Kind: KindFeedback, User: user, On: on, Text: string(what), Time: at}
}
