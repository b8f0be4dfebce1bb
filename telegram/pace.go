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

// Bounds of the pace that flood control asks for. Telegram does not publish its limits:
// about one message a second in a chat, 20 a minute in a group and 30 a second over all
// are what it lets pass for as long as one likes (core.telegram.org/bots/faq).
const (
	chatGap   = time.Second
	groupGap  = 3 * time.Second
	maxGap    = 15 * time.Second
	allGap    = 50 * time.Millisecond
	maxAllGap = time.Second
	// minGap is a gap that is no longer worth keeping.
	minGap = 25 * time.Millisecond
	// calm is how long nothing may be refused before a gap is halved.
	calm = time.Minute
	// noRetryAfter stands for a refusal that does not say for how long.
	noRetryAfter = time.Second
	// maxHold is how long a message waits inside a send. With more to wait the send ends,
	// so that it can be given up in the meantime.
	maxHold = 10 * time.Second
	// Refusals in manyChats chats within manyWindow are about the bot and not about the
	// chats. Then everything waits as long as asked, at most maxHoldAll, and goes on slower.
	manyChats  = 3
	manyWindow = 2 * time.Second
	maxHoldAll = 5 * time.Second
	// maxPaces bounds the chats whose pace is kept.
	maxPaces = 10_000
)

// pace is how fast messages may follow each other. The zero value knows no limit.
type pace struct {
	// until is when the present penalty is over: trying before makes it longer.
	until time.Time
	// gap is kept between messages since a refusal, and next when it is over.
	gap  time.Duration
	next time.Time
	// relax is when the gap is halved.
	relax time.Time
}

// refuse records a refusal. The gap grows where one was too small, and not with each of
// the messages that were under way together.
func (p *pace) refuse(now time.Time, wait, gap, longest time.Duration) {
	if !now.Before(p.until) {
		p.gap = max(gap, min(2*p.gap, longest))
	}
	p.until = later(p.until, now.Add(wait))
	p.relax = p.until.Add(calm)
	p.next = p.until
}

// slot returns when the next message may go out.
func (p *pace) slot(now time.Time) time.Time {
	for p.gap > 0 && now.After(p.relax) {
		p.relax = p.relax.Add(calm)
		if p.gap /= 2; p.gap < minGap {
			p.gap, p.next = 0, time.Time{}
		}
	}
	return later(later(now, p.until), p.next)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pacer keeps to what Telegram's flood control asks for, and knows no limit before it
// has asked. What it asks in one chat never delays another one.
type pacer struct {
	mu      sync.Mutex // guards what follows
	chats   map[string]*pace
	all     pace
	refused map[string]time.Time // the chats of the last refusals
}

func newPacer() *pacer {
	return &pacer{chats: map[string]*pace{}, refused: map[string]time.Time{}}
}

// slot returns when the next message to the chat may go out. The lock is held.
func (p *pacer) slot(chat string, now time.Time) time.Time {
	at := p.all.slot(now)
	if own := p.chats[chat]; own != nil {
		at = later(at, own.slot(now))
	}
	return at
}

// take returns how long a message to the chat has to wait. Up to maxHold its place is
// kept for it; beyond that it has to ask again.
func (p *pacer) take(chat string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	at := p.slot(chat, now)
	wait := at.Sub(now)
	if wait > maxHold {
		return wait
	}
	if p.all.gap > 0 {
		// Not from when this one goes out: its chat may have longer to wait.
		p.all.next = p.all.slot(now).Add(p.all.gap)
	}
	if own := p.chats[chat]; own != nil && own.gap > 0 {
		own.next = at.Add(own.gap)
	}
	return wait
}

// punished reports whether a penalty holds now that messages to the chat must wait out.
func (p *pacer) punished(chat string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	own := p.chats[chat]
	return now.Before(p.all.until) || own != nil && now.Before(own.until)
}

// idle reports whether nothing to the chat has to wait, so that what can be left out
// need not be.
func (p *pacer) idle(chat string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return !p.slot(chat, now).After(now)
}

// refuse records that Telegram refused a call about a chat with 429.
func (p *pacer) refuse(chat string, wait time.Duration) {
	if wait <= 0 {
		wait = noRetryAfter
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	gap := chatGap
	if strings.HasPrefix(chat, "-") {
		gap = groupGap
	}
	own := p.chats[chat]
	if own == nil {
		p.makeRoom(now)
		own = &pace{}
		p.chats[chat] = own
	}
	own.refuse(now, wait, min(gap, wait), maxGap)
	for c, at := range p.refused {
		if now.Sub(at) > manyWindow {
			delete(p.refused, c)
		}
	}
	p.refused[chat] = now
	if len(p.refused) >= manyChats {
		clear(p.refused)
		p.all.refuse(now, min(wait, maxHoldAll), allGap, maxAllGap)
	}
}

// makeRoom forgets the chats that have no limit any more, or all if there are too many.
func (p *pacer) makeRoom(now time.Time) {
	if len(p.chats) < maxPaces {
		return
	}
	for chat, own := range p.chats {
		if own.slot(now); own.gap == 0 && now.After(own.until) {
			delete(p.chats, chat)
		}
	}
	if len(p.chats) >= maxPaces {
		clear(p.chats)
	}
}

// admit waits until a message may be sent to the chat. Where that takes long, it says
// how long and does not wait.
func (p *Platform) admit(ctx context.Context, chat chats.Chat) error {
	for {
		wait := p.pacer.take(chat.ID)
		if wait <= 0 {
			return nil
		}
		if wait > maxHold || retry.Wait(ctx, wait) != nil {
			return &chats.SendError{Outcome: chats.Later, RetryAfter: wait, Err: fmt.Errorf("telegram: %s is under flood control for another %v", chat, wait.Round(time.Millisecond))}
		}
		if !p.pacer.punished(chat.ID) {
			return nil
		}
	}
}

// heed learns from an error of a call about a chat.
func (p *Platform) heed(chat chats.Chat, err error) {
	var ce *callError
	if errors.As(err, &ce) && ce.code == http.StatusTooManyRequests {
		p.pacer.refuse(chat.ID, ce.retryAfter)
	}
}
