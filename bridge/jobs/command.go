package jobs

import (
	"context"

	"oneclaw/bridge/chats"
)

// Command is something that a person asks of the bot itself, not of the model.
type Command struct {
	chats.CommandInfo
	// Hidden ones are understood and not listed.
	Hidden bool
	// Open ones are for everybody, also for those who may not talk to the bot.
	Open bool
	// Alone says that the answer is for whoever gave the command: see [Job.Only].
	Alone bool
	// Run returns what is answered, in Markdown. An error is tried again; for what the
	// person did wrong the answer says so.
	Run func(ctx context.Context, j *Job, args string) (string, error)
}
