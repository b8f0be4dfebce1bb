// Package memory keeps facts about a person or a shared chat across conversations.
//
// Facts are notes in six sections. Each owner has one document, and no call can access the notes
// of another owner. The model adds notes with save_memory. The prompt of a conversation has the
// notes from before it began ([Snapshot]), so that it stays the same, byte for byte. Later
// notes are in the conversation itself.
package memory
