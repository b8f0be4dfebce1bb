package bridge

import (
	"context"
	"fmt"
	"time"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/lanes"
	"oneclaw/internal/cache"
)

const (
	// fullInterval is how long nobody is told again that too much waits, while it does.
	fullInterval = 10 * time.Minute
	// maxTold bounds the chats and members remembered as told.
	maxTold = 10_000
)

// limit is a bound of what waits, and how much does.
type limit struct {
	// whose names the chat or the member, and what is counted.
	whose          string
	waiting, bound int
	notice         string
}

// bounds returns the bounds that hold for a message: those of its chat, and in a shared
// chat those of its sender, over all shared chats. Commands wait in a queue of their own.
func (in *intake) bounds(l *lanes.Lane, j *jobs.Job) []limit {
	waiting, _ := l.Load()
	what := "messages"
	if in.kinds.of(j).beside {
		waiting, what = l.Deciding(), "commands"
	}
	all := []limit{{
		whose: l.Chat.String() + " " + what, waiting: waiting, bound: in.limits.MaxWaiting,
		notice: fmt.Sprintf("%d %s are waiting here already, so I take no more for now. "+
			"Please send yours again later, or send /stop to drop the waiting messages.", waiting, what),
	}}
	if j.Message.Direct {
		return all
	}
	waiting = in.lanes.TakeRoom(j, in.limits.MaxWaitingMember)
	return append(all, limit{
		whose: j.By(), waiting: waiting, bound: in.limits.MaxWaitingMember,
		notice: fmt.Sprintf("%d of your messages are waiting already, so I take no more of yours for now. "+
			"Please send this one again when they are answered.", waiting),
	})
}

// refuses reports whether too much waits for a message to be taken. Then there is a
// notice, one for a burst, in the lane of the cards, and the message has a receipt: it is
// refused again however often it is delivered.
func (in *intake) refuses(ctx context.Context, l *lanes.Lane, j *jobs.Job) (bool, error) {
	var over *limit
	for _, limit := range in.bounds(l, j) {
		if over == nil && limit.waiting >= limit.bound {
			over = &limit
		}
		if limit.waiting == 0 {
			in.burstOver(limit.whose)
		}
	}
	if over == nil {
		return false, nil
	}
	in.lanes.GiveRoom(j)
	if in.lanes.Has(j.Key()) {
		return false, nil
	}
	if known, err := in.jobs.Closed(ctx, j.Key()); known || err != nil {
		return known, err
	}
	if in.stops.is(j) {
		return true, in.stopUnanswered(ctx, j)
	}
	j.Notice = over.notice
	if in.tellFull(over.whose) {
		if _, err := in.desk.Post(ctx, "full/"+j.Key(), j.Message.Chat, cards.Card{ReplyTo: j.Message.ID, Text: over.notice}); err != nil {
			in.burstOver(over.whose)
			return true, err
		}
		in.log.Warn("messages are refused: too many wait", "chat", l.Chat.String(), "whose", over.whose)
	}
	j.State, j.Closed = jobs.StateRefused, in.now()
	return true, in.jobs.Close(ctx, j)
}

// stopUnanswered makes a /stop take effect to which there is no room for a reply.
func (in *intake) stopUnanswered(ctx context.Context, j *jobs.Job) error {
	added, err := in.jobs.Add(ctx, j)
	if !added || err != nil {
		return err
	}
	in.stops.now(j)
	j.State, j.Closed = jobs.StateDone, in.now()
	return in.jobs.Close(ctx, j)
}

// tellFull reports whether somebody is to be told that too much waits, and notes that they
// are.
func (in *intake) tellFull(whose string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.now()
	if at, _ := in.full.Get(whose); now.Sub(at).Abs() < fullInterval {
		return false
	}
	in.full.Put(whose, now, cache.Forever)
	return true
}

// burstOver forgets that somebody was told: all that waited is answered, or the notice
// could not be kept.
func (in *intake) burstOver(whose string) { in.full.Put(whose, time.Time{}, cache.Forever) }
