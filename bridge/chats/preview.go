package chats

import (
	"context"
	"time"
)

// Previewer is a platform that shows an answer while it is made, in a message that grows and
// becomes the first of the answer in the end. Errors are *[SendError]. Nobody waits for a
// preview: what is answered with Later is left out, and shown with the next one.
type Previewer interface {
	// Room returns 0 where a preview may be shown in a chat now, or the message with this id
	// changed, and keeps the room for that. Otherwise it returns after what time to ask
	// again. It keeps room for the answers that the previews become, and never waits.
	Room(to Address, id string) time.Duration
	// Begin shows the first of a preview and returns the platform's id of its message.
	Begin(ctx context.Context, to Address, show Preview) (string, error)
	// Update has the message show more.
	Update(ctx context.Context, to Address, id string, show Preview) error
	// Finish has the message be a part of an answer like any other. Doing it again does no
	// harm. It is refused where the message is gone.
	Finish(ctx context.Context, to Address, id string, part Part) error
}

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
