package chats

// Preview is the current state of an unfinished answer.
type Preview struct {
	// Part holds all of it in one message. Its note says what is being done, or is [NoteMore].
	Part Part
	// Text is the answer so far in Markdown.
	Text string
	// Growing is Text before the open formatting at its end is closed, for a platform that is given
	// only additions.
	Growing string
}

// NoteMore is below a preview that fills its message.
const NoteMore = "✍ There is more to come …"
