// Package memory keeps facts about a person or a shared chat beyond a conversation.
//
// Facts are notes in six sections, one document for each owner, and no call reaches
// those of another. The model adds them with save_memory. A conversation carries the
// memory as it was when it began ([Memory.Snapshot]): what is saved later stands in the
// conversation itself, and the beginning of its requests stays the same bytes.
package memory
