package slack

import (
	"context"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

const (
	// setStatus is the method that shows and clears a status.
	setStatus = "assistant.threads.setStatus"
	// thinking is shown behind the name of the bot.
	thinking = "is thinking…"
	// statusRefresh is how often a status is set again: Slack drops it after two
	// minutes.
	statusRefresh = time.Minute
	// statusAge is how long one may stand that a former process has set.
	statusAge = 2*time.Minute + saveInterval
	// maxStatuses bounds the statuses shown at once.
	maxStatuses = 10_000
	// sweepTimeout bounds what is still done at the end.
	sweepTimeout = 5 * time.Second
)

// statuses are those that may be shown. While one is shown, people cannot write in
// the thread, so that none may be left behind.
type statuses struct {
	mu    sync.Mutex
	off   bool // the app may not show any
	shown map[chats.Chat]*shown
}

// shown is a status that may be shown.
type shown struct {
	at    time.Time // when it is due to be set again: statusRefresh later
	busy  int       // calls that set it and have not ended
	ended time.Time // when the last of them ended
	left  bool      // it should be cleared and may not be
}

// begin notes that a status is about to be set, and reports whether to.
func (s *statuses) begin(chat chats.Chat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.shown[chat]
	if s.off || st == nil && len(s.shown) >= maxStatuses || st != nil && time.Since(st.at) < statusRefresh {
		return false
	}
	if st == nil {
		st = &shown{}
		s.shown[chat] = st
	}
	st.at, st.left = time.Now(), false
	st.busy++
	return true
}

// end notes that the call after begin has ended.
func (s *statuses) end(chat chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.shown[chat]; st != nil {
		st.busy--
		st.ended = time.Now()
	}
}

// answered notes that an answer, begun at a time, has arrived: that clears the
// status, but not one that was set while the answer was on its way.
func (s *statuses) answered(chat chats.Chat, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.shown[chat]
	switch {
	case st == nil:
	case st.busy == 0 && st.ended.Before(begun):
		delete(s.shown, chat)
	default:
		st.at = time.Time{}
	}
}

// forget reports whether a status may be shown, and forgets it.
func (s *statuses) forget(chat chats.Chat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.shown[chat]
	delete(s.shown, chat)
	return known
}

// remember notes that a status may stand that should not.
func (s *statuses) remember(chat chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown[chat] != nil || s.off || len(s.shown) >= maxStatuses {
		return
	}
	s.shown[chat] = &shown{ended: time.Now(), left: true}
}

func (s *statuses) turnOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = true
	clear(s.shown)
}

// list returns where a status may stand: everywhere, or where it should not.
func (s *statuses) list(leftAlone bool) []chats.Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chats []chats.Chat
	for chat, st := range s.shown {
		if st.left || !leftAlone {
			chats = append(chats, chat)
		}
	}
	return chats
}

// Typing shows in a thread that the bot is at work, or clears the sign.
func (p *Platform) Typing(ctx context.Context, to chats.Address, on bool) error {
	if to.Chat.Thread == "" {
		return nil
	}
	if !on {
		if !p.statuses.forget(to.Chat) {
			return nil
		}
		return p.setStatus(ctx, to.Chat, "")
	}
	if p.api.paces.Busy(request{method: postMessage, place: to.Chat.ID}.key(), request{method: setStatus}.key()) {
		return nil // what is to be read goes first
	}
	if !p.statuses.begin(to.Chat) {
		return nil
	}
	defer p.statuses.end(to.Chat)
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
		p.statuses.turnOff()
		p.log.Info("slack shows no status for this app", "err", err)
		return nil
	case refused(err, "invalid_thread_ts", "channel_not_found", "not_in_channel"):
		p.statuses.forget(chat) // none is shown where there is no such thread
	case err != nil && status == "":
		p.statuses.remember(chat) // the next sweep tries once more
	}
	return err
}

// sweep clears what is still shown, or only what should not be.
func (p *Platform) sweep(ctx context.Context, leftAlone bool) {
	for _, chat := range p.statuses.list(leftAlone) {
		if err := p.Typing(ctx, chats.Address{Chat: chat}, false); err != nil {
			p.log.Warn("status not cleared", "chat", chat.String(), "err", err)
		}
	}
}
