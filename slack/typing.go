package slack

import (
	"context"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

const (
	// setStatus is the method that shows and clears a status.
	setStatus = "assistant.threads.setStatus"
	// thinking is shown after the name of the bot.
	thinking = "is thinking…"
	// statusAge is how long a status of an earlier process may be shown.
	statusAge = 2*time.Minute + saveInterval
	// sweepTimeout bounds the final clean-up.
	sweepTimeout = 5 * time.Second
)

// SetTyping shows in a thread that the bot is working, or clears that status. While messages to the
// channel wait because of Slack's rate limits, it shows nothing.
func (p *platform) SetTyping(ctx context.Context, to chats.Address, on bool) error {
	if to.Chat.Thread == "" {
		return nil
	}
	if !on {
		if !p.statuses.Forget(to.Chat) {
			return nil
		}
		return p.setStatus(ctx, to.Chat, "")
	}
	if p.api.pacer.Busy(apiCall{method: postMessage, channel: to.Chat.ID}.key(), apiCall{method: setStatus}.key()) {
		return nil // messages go first
	}
	if !p.statuses.Begin(to.Chat) {
		return nil
	}
	defer p.statuses.End(to.Chat)
	return p.setStatus(ctx, to.Chat, thinking)
}

func (p *platform) setStatus(ctx context.Context, chat chats.Chat, status string) error {
	err := p.api.call(ctx, setStatus, func(ctx context.Context, api *slack.Client) error {
		return api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
			ChannelID: chat.ID, ThreadTS: chat.Thread, Status: status,
		})
	})
	switch {
	case hasErrorCode(err, "missing_scope", "not_authorized", "not_allowed", "access_denied", "no_permission", "unknown_method", "method_deprecated"):
		p.statuses.TurnOff()
		p.log.Info("slack shows no status for this app", "err", err)
		return nil
	case hasErrorCode(err, "invalid_thread_ts", "channel_not_found", "not_in_channel"):
		p.statuses.Forget(chat) // there is no such thread
	case err != nil && status == "":
		p.statuses.AddStale(chat) // the next clearStatuses retries
	}
	return err
}

// clearStatuses clears all shown statuses, or only the stale ones.
func (p *platform) clearStatuses(ctx context.Context, onlyStale bool) {
	for _, chat := range p.statuses.List(onlyStale) {
		if err := p.SetTyping(ctx, chats.Address{Chat: chat}, false); err != nil {
			p.log.Warn("status not cleared", "chat", chat.String(), "err", err)
		}
	}
}
