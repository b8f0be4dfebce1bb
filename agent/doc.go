// Package agent answers: it is given a conversation and a set of tools and yields,
// one after another, every message that becomes part of the conversation.
//
// The agent is a function of its input and knows neither chats nor storage. The caller
// stores each [Message] before it asks for the next one, so every tool call is on record
// before it runs, and a turn that ended anywhere is continued by running it again with
// the history as it was stored: see [Agent.Run].
package agent
