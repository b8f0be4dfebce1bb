package chats

import "time"

// Opinion is what somebody thinks of one of the bot's messages from now on, or does not think
// any more: the text of a message of [KindOpinion].
type Opinion string

// The opinions.
const (
	Good    Opinion = "good"
	Bad     Opinion = "bad"
	NotGood Opinion = "not good"
	NotBad  Opinion = "not bad"
)

// Judged is the message with which a platform says that a user thinks so of the bot's message
// with the id on, and when that was. Platforms need not know whose message it is, nor in which
// thread it stands; saying it again does no harm.
func Judged(chat Chat, on, user string, what Opinion, at time.Time) Message {
	return Message{Chat: chat, ID: on, Kind: KindOpinion, User: user, On: on, Text: string(what), Time: at}
}
