package delivery

import (
	"context"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// whisper shows a part to whoever is answered and to nobody else, or to all where the platform
// cannot do that. What is veiled is shown as it is.
func (s *Sender) whisper(ctx context.Context, j *jobs.Job, to chats.Address, part chats.Part) (string, error) {
	part, err := s.cfg.Lift(ctx, j, part)
	if err != nil {
		return "", &chats.SendError{Outcome: chats.Later, Err: err}
	}
	platform := s.cfg.Platforms[to.Chat.Platform]
	if w, ok := platform.(chats.Whisperer); ok && !j.Message.Direct {
		return w.Whisper(ctx, to, j.Message.User, part)
	}
	return platform.Send(ctx, to, part)
}
