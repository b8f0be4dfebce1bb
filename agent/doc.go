// Package agent answers: it is given a conversation and a set of tools and yields,
// one after another, every message that becomes part of the conversation.
//
// The agent is a function of its input. It knows neither chats nor storage: the
// caller stores each [Message] it is given before it asks for the next one, and the
// agent acts on a message (runs a tool call, sends a result to the model) only after
// that. So every tool call is on record before it runs, and a turn that ended
// anywhere, by a crash or by waiting for an approval, is continued by running it
// again with the history as it was stored: see [Agent.Run].
package agent
