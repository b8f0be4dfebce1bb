package queue

import (
	"context"

	"oneclaw/bridge/chats"
)

// SecretPlaceholder stands for a secret in an answer that only its user may see: the records of the
// answer hold the placeholder, the sent text holds the secret of the command.
const SecretPlaceholder = "ONECLAW-VEIL"

// Command is a command for the bot itself, not for the model.
type Command struct {
	chats.CommandInfo
	// Hidden commands work but are not listed.
	Hidden bool
	// Message says that what stands behind the command is a message for the model: Run only answers the
	// command alone.
	Message bool
	// Open commands are for all users, including those who may not talk to the bot.
	Open bool
	// Alone says that only the user who gave the command sees the answer.
	Alone bool
	// Secret, if set, returns the secret for [SecretPlaceholder] in the answer. It is called whenever
	// that is sent: no record holds what it returns.
	Secret func(ctx context.Context, j *Run) (string, error)
	// Run returns the answer in Markdown. An error is retried; a mistake of the user is explained in
	// the answer.
	Run func(ctx context.Context, j *Run, args string) (string, error)
}
