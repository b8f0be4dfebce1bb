package chats

import "context"

// Signer is a platform on which the bot can show with a sign on a message of somebody that it
// has seen it.
type Signer interface {
	// Sign puts the sign on a message, or takes it away; where that is so already nothing
	// happens. Errors are *[SendError]. Nobody waits for it: where it would take the room of
	// an answer, it ends with Later at once, and has done nothing.
	Sign(ctx context.Context, chat Chat, id string, on bool) error
}

// Waiter is a platform that can show that a turn waits for the decision of a person.
type Waiter interface {
	// Waits shows that in a chat, or that it is over. It is best effort and holds nobody up.
	Waits(ctx context.Context, chat Chat, on bool)
}
