package queue

import (
	"context"

	"oneclaw/bridge/chats"
)

// SecretPlaceholder stands in an answer for what only the person who asked shall see: the records of the
// answer have it, what is sent has the secret of the command.
const SecretPlaceholder = "ONECLAW-VEIL"

// Command is something that a person asks of the bot itself, not of the model.
type Command struct {
	chats.CommandInfo
	// Hidden ones are understood and not listed.
	Hidden bool
	// Open ones are for everybody, also for those who may not talk to the bot.
	Open bool
	// Alone says that the answer is for the user who gave the command: see [Job.Ephemeral].
	Alone bool
	// Secret, where it is set, makes what stands in the place of [SecretPlaceholder] in the answer. It is
	// called when that is sent, again with each try: what it returns is in no record.
	Secret func(ctx context.Context, j *Run) (string, error)
	// Run returns what is answered, in Markdown. An error is tried again; for what the
	// person did wrong the answer says so.
	Run func(ctx context.Context, j *Run, args string) (string, error)
}
