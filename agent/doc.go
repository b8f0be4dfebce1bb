// Package agent answers messages: given a conversation and a set of tools, it yields the messages that
// become part of the conversation, one after another.
//
// The agent is a function of its input and depends on neither chats nor storage. The caller stores each
// [Message] before it asks for the next one, so every tool call is on record before it runs. A turn that
// was interrupted is continued by running it again with the stored history; see [Agent.Run].
package agent
