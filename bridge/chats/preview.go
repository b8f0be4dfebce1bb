package chats

// Preview is the current state of an unfinished answer.
type Preview struct {
	// Part holds the whole preview in one message. Its note says what the bot is doing, or is
	// [NoteMore].
	Part Part
	// Text is the answer so far in Markdown.
	Text string
	// UnclosedText is Text before the open formatting at its end is closed, for a platform that receives
	// only additions.
	UnclosedText string
}

// NoteMore is shown below a preview that fills its message.
const NoteMore = "✍ There is more to come …"
