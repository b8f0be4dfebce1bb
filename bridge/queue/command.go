package queue

import (
	"context"

	"oneclaw/bridge/chats"
)

// SecretPlaceholder stands for a secret in an answer that only its user may see. The records of the
// answer contain the placeholder, and the sent text contains the secret of the command.
const SecretPlaceholder = "ONECLAW-VEIL"

// Command is a command for the bot itself, not for the model.
type Command struct {
	chats.CommandInfo
	// Hidden commands work but are not listed.
	Hidden bool
	// TakesMessage says that the text after the command is a message for the model. Run is called only
	// if there is no such text.
	TakesMessage bool
	// Public commands are for all users, including those who may not talk to the bot.
	Public bool
	// Ephemeral says that only the user who gave the command sees the answer.
	Ephemeral bool
	// Secret, if set, returns the secret that replaces [SecretPlaceholder] in the answer. It is called
	// at each attempt to send, and no record contains the secret.
	Secret func(ctx context.Context, j *Run) (string, error)
	// Run returns the answer in Markdown. After an error it is called again, so a mistake by the user is
	// explained in the answer.
	Run func(ctx context.Context, j *Run, args string) (string, error)
}
