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
	// thinking is shown behind the name of the bot.
	thinking = "is thinking…"
	// statusAge is how long one may stand that a former process has set.
	statusAge = 2*time.Minute + saveInterval
	// sweepTimeout bounds what is still done at the end.
	sweepTimeout = 5 * time.Second
)

// SetTyping shows in a thread that the bot is at work, or clears the sign.
func (p *Platform) SetTyping(ctx context.Context, to chats.Address, on bool) error {
	if to.Chat.Thread == "" {
		return nil
	}
	if !on {
		if !p.statuses.Forget(to.Chat) {
			return nil
		}
		return p.setStatus(ctx, to.Chat, "")
	}
	if p.api.paces.Busy(request{method: postMessage, place: to.Chat.ID}.key(), request{method: setStatus}.key()) {
		return nil // what is to be read goes first
	}
	if !p.statuses.Begin(to.Chat) {
		return nil
	}
	defer p.statuses.End(to.Chat)
	return p.setStatus(ctx, to.Chat, thinking)
}

func (p *Platform) setStatus(ctx context.Context, chat chats.Chat, status string) error {
	err := p.api.call(ctx, setStatus, func(ctx context.Context, api *slack.Client) error {
		return api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
			ChannelID: chat.ID, ThreadTS: chat.Thread, Status: status,
		})
	})
	switch {
	case refused(err, "missing_scope", "not_authorized", "not_allowed", "access_denied", "no_permission", "unknown_method", "method_deprecated"):
		p.statuses.TurnOff()
		p.log.Info("slack shows no status for this app", "err", err)
		return nil
	case refused(err, "invalid_thread_ts", "channel_not_found", "not_in_channel"):
		p.statuses.Forget(chat) // none is shown where there is no such thread
	case err != nil && status == "":
		p.statuses.Remember(chat) // the next sweep tries once more
	}
	return err
}

// sweep clears what is still shown, or only what should not be.
func (p *Platform) sweep(ctx context.Context, leftAlone bool) {
	for _, chat := range p.statuses.List(leftAlone) {
		if err := p.SetTyping(ctx, chats.Address{Chat: chat}, false); err != nil {
			p.log.Warn("status not cleared", "chat", chat.String(), "err", err)
		}
	}
}
