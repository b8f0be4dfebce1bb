package bridge

import (
	"context"
	"fmt"
	"maps"
	"time"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/lanes"
)

const (
	// fullInterval is how long nobody is told again that too much waits, while it does.
	fullInterval = 10 * time.Minute
	// maxFull bounds the chats and members remembered as told.
	maxFull = 10_000
)

// limit is a bound of what waits, and how much does.
type limit struct {
	// whose names the chat or the member, and what is counted.
	whose          string
	waiting, bound int
	notice         string
}

// limits returns the bounds that hold for a message: those of its chat, and in a shared
// chat those of its sender, over all shared chats. Commands wait in a queue of their own.
func (b *Bridge) limits(l *lanes.Lane, j *jobs.Job) []limit {
	waiting, _ := l.Load()
	what := "messages"
	if b.kind(j).beside {
		waiting, what = l.Deciding(), "commands"
	}
	all := []limit{{
		whose: l.Chat.String() + " " + what, waiting: waiting, bound: b.cfg.Limits.MaxWaiting,
		notice: fmt.Sprintf("%d %s are waiting here already, so I take no more for now. "+
			"Please send yours again later, or send /stop to drop the waiting messages.", waiting, what),
	}}
	if j.Message.Direct {
		return all
	}
	waiting = b.lanes.TakeRoom(j, b.cfg.Limits.MaxWaitingMember)
	return append(all, limit{
		whose: j.By(), waiting: waiting, bound: b.cfg.Limits.MaxWaitingMember,
		notice: fmt.Sprintf("%d of your messages are waiting already, so I take no more of yours for now. "+
			"Please send this one again when they are answered.", waiting),
	})
}

// refuses reports whether too much waits for a message to be taken. Then there is a
// notice, one for a burst, in the lane of the cards, and the message has a receipt: it is
// refused again however often it is delivered.
func (b *Bridge) refuses(ctx context.Context, l *lanes.Lane, j *jobs.Job) (bool, error) {
	var over *limit
	for _, limit := range b.limits(l, j) {
		if over == nil && limit.waiting >= limit.bound {
			over = &limit
		}
		if limit.waiting == 0 {
			b.burstOver(limit.whose)
		}
	}
	if over == nil {
		return false, nil
	}
	b.lanes.GiveRoom(j)
	if b.lanes.Has(j.Key()) {
		return false, nil
	}
	if known, err := b.jobs.Closed(ctx, j.Key()); known || err != nil {
		return known, err
	}
	if b.isStop(j) {
		return true, b.stopUnanswered(ctx, j)
	}
	j.Notice = over.notice
	if b.tellFull(over.whose) {
		if err := b.Post(ctx, "full/"+j.Key(), j.Message.Chat, cards.Card{ReplyTo: j.Message.ID, Text: over.notice}); err != nil {
			b.burstOver(over.whose)
			return true, err
		}
		b.log.Warn("messages are refused: too many wait", "chat", l.Chat.String(), "whose", over.whose)
	}
	j.State, j.Closed = jobs.StateRefused, b.cfg.Now()
	return true, b.jobs.Close(ctx, j)
}

// stopUnanswered makes a /stop take effect to which there is no room for a reply.
func (b *Bridge) stopUnanswered(ctx context.Context, j *jobs.Job) error {
	added, err := b.jobs.Add(ctx, j)
	if !added || err != nil {
		return err
	}
	b.stopNow(j)
	j.State, j.Closed = jobs.StateDone, b.cfg.Now()
	return b.jobs.Close(ctx, j)
}

// tellFull reports whether somebody is to be told that too much waits, and notes that they
// are.
func (b *Bridge) tellFull(whose string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.cfg.Now()
	if at, told := b.full[whose]; told && now.Sub(at).Abs() < fullInterval {
		return false
	}
	if len(b.full) >= maxFull {
		maps.DeleteFunc(b.full, func(_ string, at time.Time) bool { return now.Sub(at).Abs() >= fullInterval })
	}
	if len(b.full) >= maxFull {
		clear(b.full)
	}
	b.full[whose] = now
	return true
}

// burstOver forgets that somebody was told: all that waited is answered, or the notice
// could not be kept.
func (b *Bridge) burstOver(whose string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.full, whose)
}
