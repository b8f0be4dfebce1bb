package outbox

import (
	"context"
	"errors"
	"fmt"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
)

// errUnlifted says that the secret of a part could not be made.
var errUnlifted = errors.New("outbox: the secret of an answer")

// sendEphemeral sends a part that only the user sees, or all if the platform cannot do that, with its
// secret filled in.
func (s *Sender) sendEphemeral(ctx context.Context, j *queue.Run, to chats.Address, part chats.Part) (string, error) {
	part, err := s.cfg.Secrets.Lift(ctx, j, part)
	if err != nil {
		return "", &chats.SendError{Outcome: chats.Later, Err: fmt.Errorf("%w: %w", errUnlifted, err)}
	}
	platform := s.cfg.Platforms[to.Chat.Platform]
	if w, ok := platform.(chats.EphemeralSender); ok && !j.Message.Direct {
		return w.SendEphemeral(ctx, to, j.Message.User, part)
	}
	return platform.Send(ctx, to, part)
}
