// Package memory keeps facts about a person or a shared chat beyond a conversation.
//
// Facts are notes in six sections, one document for each owner; no call can reach those of
// another owner. The model adds them with save_memory. A conversation carries the memory as it
// was at its beginning ([Memory.Snapshot]): later notes are in the conversation itself, and its
// prompt stays the same bytes.
package memory
