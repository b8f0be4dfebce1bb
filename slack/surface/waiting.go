package surface

import (
	"context"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

// maxWaiting bounds the threads in memory in which a turn waits.
const maxWaiting = 1000

// SetWaiting shows that a turn in a thread waits for a decision, or no longer does. In the second case
// the session is idle until the next activity.
func (s *Surface) SetWaiting(ctx context.Context, chat chats.Chat, on bool) {
	if chat.Thread == "" || !s.canUse(sessionStatus) {
		return
	}
	s.mu.Lock()
	if delete(s.waiting, chat); on && len(s.waiting) < maxWaiting {
		s.waiting[chat] = true
	}
	s.mu.Unlock()
	s.RunInBackground(ctx, "slack may not show whether a turn waits for a decision", func(ctx context.Context) error {
		s.sessionMu.Lock()
		defer s.sessionMu.Unlock()
		status := slack.AgentSessionStatusActive
		if s.isWaiting(chat) {
			status = slack.AgentSessionStatusSuspended
		}
		return s.setSessionStatus(ctx, chat.ID, chat.Thread, status)
	})
}

func (s *Surface) isWaiting(chat chats.Chat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[chat]
}

func (s *Surface) setSessionStatus(ctx context.Context, channel, thread, status string) error {
	return s.call(ctx, sessionStatus, func(ctx context.Context, api *slack.Client) error {
		_, err := api.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{ChannelID: channel, ThreadTS: thread, Status: status})
		return err
	})
}
