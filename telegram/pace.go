package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
)

// Bounds of the rate after flood control. Telegram does not publish its limits: about one message a
// second in a chat, 20 a minute in a group and 30 a second in total are sustainable
// (core.telegram.org/bots/faq).
const (
	chatGap   = time.Second
	groupGap  = 3 * time.Second
	maxGap    = 15 * time.Second
	allGap    = 50 * time.Millisecond
	maxAllGap = time.Second
	// noRetryAfter is the pause after a refusal without a duration.
	noRetryAfter = time.Second
	// maxHold bounds the wait inside a send.
	maxHold = 10 * time.Second
	// Refusals in manyChats chats within manyWindow concern the bot and not the chats. All requests then
	// wait as long as asked, at most maxHoldAll, and continue at a lower rate.
	manyChats  = 3
	manyWindow = 2 * time.Second
	maxHoldAll = 5 * time.Second
)

// allChats is the key of the limit of all chats.
const allChats = ""

// pacer obeys flood control. A chat delays others only if Telegram refuses manyChats chats at once.
type pacer struct {
	limits *retry.Pacer

	mu      sync.Mutex           // guards refused
	refused map[string]time.Time // chats of the last refusals
}

// isIdle reports whether no message to the chat has to wait.
func (p *pacer) isIdle(chat string) bool { return !p.limits.Busy(allChats, chat) }

// recordRefusal records that Telegram refused a call for a chat with 429.
func (p *pacer) recordRefusal(chat string, wait time.Duration) {
	if wait <= 0 {
		wait = noRetryAfter
	}
	gap := chatGap
	if strings.HasPrefix(chat, "-") {
		gap = groupGap
	}
	p.limits.RecordRefusal(chat, wait, min(gap, wait), maxGap)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for c, at := range p.refused {
		if now.Sub(at) > manyWindow {
			delete(p.refused, c)
		}
	}
	p.refused[chat] = now
	if len(p.refused) >= manyChats {
		clear(p.refused)
		p.limits.RecordRefusal(allChats, min(wait, maxHoldAll), allGap, maxAllGap)
	}
}

// admit waits until a message may be sent. If that takes longer than maxHold, or ctx ends, it returns an
// error that says how long it takes.
func (p *platform) admit(ctx context.Context, chat chats.Chat) error {
	wait := p.pacer.limits.Wait(ctx, allChats, chatID(chat))
	if wait <= 0 {
		return nil
	}
	return &chats.SendError{Outcome: chats.Later, RetryAfter: wait, Err: fmt.Errorf("telegram: %s is under flood control for another %v", chat, wait.Round(time.Millisecond))}
}

// adaptRate adapts the rate of a chat to the error of a call.
func (p *platform) adaptRate(chat chats.Chat, err error) {
	if ce, ok := errors.AsType[*callError](err); ok && ce.code == http.StatusTooManyRequests {
		p.pacer.recordRefusal(chatID(chat), ce.retryAfter)
	}
}
