// Package agent answers: from a conversation and a set of tools it yields, one after another, the
// messages that become part of the conversation.
//
// The agent is a function of its input and knows neither chats nor storage. The caller stores each
// [Message] before it asks for the next one, so every tool call is on record before it runs, and a turn
// that ended anywhere is continued by running it again with the stored history: see [Agent.Run].
package agent
