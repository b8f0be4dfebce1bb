package bridge

import (
	"context"
	"fmt"
	"time"

	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/cache"
	"oneclaw/storage"
)

const (
	// fullInterval is how long no sender is told again that too much waits, while it does.
	fullInterval = 10 * time.Minute
	// maxTold bounds the chats and bursts remembered as told.
	maxTold = 10_000
)

// refuse reports whether a message is not taken, because too much waits in its chat or of its
// sender. Then there is a notice, one for a burst, in the lane of the cards, and the message
// has a receipt: it is refused again however often it is delivered.
func (in *intake) refuse(ctx context.Context, j *queue.Run, lane, sender queue.Occupancy) (bool, error) {
	in.lanes.Release(j)
	if in.lanes.Has(j.Key()) {
		return false, nil
	}
	if known, err := in.jobs.Closed(ctx, j.Key()); known || err != nil {
		return known, err
	}
	w := in.workers.of(j)
	if _, stops := w.(stopper); stops {
		return true, in.stopUnanswered(ctx, j)
	}
	whose, full, what := j.Message.By(), sender, ""
	outbox.Of(j).Notice = fmt.Sprintf("%d of your messages are waiting already, so I take no more of yours for now. "+
		"Please send this one again when they are answered.", sender.Waiting)
	if lane.Waiting >= in.cfg.Limits.MaxWaiting {
		whose, full, what = j.Message.Chat.String(), lane, "messages"
		if w.declares().Barrier {
			what = "commands"
		}
		outbox.Of(j).Notice = fmt.Sprintf("%d %s are waiting here already, so I take no more for now. "+
			"Please send yours again later, or send /stop to drop the waiting messages.", lane.Waiting, what)
	}
	if burst := fmt.Sprint(whose, " ", what, full.Burst); in.tellFull(burst) {
		if _, err := in.cards.Post(ctx, "full/"+j.Key(), j.Message.Chat, interact.Card{ReplyTo: j.Message.ID, Text: outbox.Of(j).Notice}); err != nil {
			in.full.Put(burst, time.Time{}, cache.Forever)
			return true, err
		}
		in.log.Warn("messages are refused: too many wait", "chat", j.Message.Chat.String(), "whose", whose)
	}
	in.workers.decide(j) // it has a notice now
	j.State, j.Closed = receipts.Refused, in.cfg.Now()
	return true, in.jobs.WriteReceipt(ctx, j, storage.Absent)
}

// stopUnanswered makes a /stop take effect to which there is no room for a reply.
func (in *intake) stopUnanswered(ctx context.Context, j *queue.Run) error {
	added, err := in.inserter.add(ctx, j)
	if !added || j.Unclaimed || err != nil {
		return err
	}
	in.inserter.stopOlder(j)
	j.State, j.Closed = receipts.Done, in.cfg.Now()
	return in.jobs.Close(ctx, j, nil)
}

// tellFull reports whether a burst is to be told of, and notes that it is.
func (in *intake) tellFull(burst string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.cfg.Now()
	if at, _ := in.full.Get(burst); now.Sub(at).Abs() < fullInterval {
		return false
	}
	in.full.Put(burst, now, cache.Forever)
	return true
}
