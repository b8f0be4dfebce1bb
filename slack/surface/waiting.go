package surface

import (
	"context"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

// maxWaiting bounds the remembered threads in which a turn waits.
const maxWaiting = 1000

// SetWaiting shows that a turn in a thread waits for a decision, or no longer does: then the session is
// idle until the next activity.
func (s *Surface) SetWaiting(ctx context.Context, chat chats.Chat, on bool) {
	if chat.Thread == "" || !s.may(sessionStatus) {
		return
	}
	s.mu.Lock()
	if delete(s.waiting, chat); on && len(s.waiting) < maxWaiting {
		s.waiting[chat] = true
	}
	s.mu.Unlock()
	s.Background(ctx, "slack does not show whether a decision is due", func(ctx context.Context) error {
		s.telling.Lock()
		defer s.telling.Unlock()
		status := slack.AgentSessionStatusActive
		if s.waits(chat) {
			status = slack.AgentSessionStatusSuspended
		}
		return s.setSession(ctx, chat.ID, chat.Thread, status)
	})
}

func (s *Surface) waits(chat chats.Chat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[chat]
}

func (s *Surface) setSession(ctx context.Context, channel, thread, status string) error {
	return s.call(ctx, sessionStatus, func(ctx context.Context, api *slack.Client) error {
		_, err := api.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{ChannelID: channel, ThreadTS: thread, Status: status})
		return err
	})
}
