package chats

// Preview is what there is of an answer by now.
type Preview struct {
	// Part is all of it in one message. Its note says what is being done, or [NoteMore].
	Part Part
	// Text is the answer so far in Markdown.
	Text string
	// Growing is Text before what is open at its end is closed, for a platform that is given
	// only what is new.
	Growing string
}

// NoteMore stands under what fills its message.
const NoteMore = "✍ There is more to come …"
