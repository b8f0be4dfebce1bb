package outbox

import (
	"context"
	"errors"
	"fmt"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
)

// errNoSecret is returned when the secret of a part cannot be made.
var errNoSecret = errors.New("outbox: make the secret of an answer")

// sendEphemeral fills in the secret of a part and sends the part so that only the user sees it. If the
// platform does not support that, everyone in the chat sees it.
func (s *Sender) sendEphemeral(ctx context.Context, j *queue.Run, to chats.Address, part chats.Part) (string, error) {
	part, err := s.cfg.Secrets.FillSecret(ctx, j, part)
	if err != nil {
		return "", &chats.SendError{Outcome: chats.Later, Err: fmt.Errorf("%w: %w", errNoSecret, err)}
	}
	platform := s.cfg.Platforms[to.Chat.Platform]
	if w, ok := platform.(chats.EphemeralSender); ok && !j.Message.Direct {
		return w.SendEphemeral(ctx, to, j.Message.User, part)
	}
	return platform.Send(ctx, to, part)
}
