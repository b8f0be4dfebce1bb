package delivery

import (
	"context"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// whisper shows a part to whoever is answered and to nobody else, or to all where the platform
// cannot do that.
func (s *Sender) whisper(ctx context.Context, j *jobs.Job, to chats.Address, part chats.Part) (string, error) {
	platform := s.cfg.Platforms[to.Chat.Platform]
	if w, ok := platform.(chats.Whisperer); ok {
		return w.Whisper(ctx, to, j.Message.User, part)
	}
	return platform.Send(ctx, to, part)
}
