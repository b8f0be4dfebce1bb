package bridge

import (
	"context"

	"oneclaw/bridge/approval"
	"oneclaw/bridge/cards"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/lanes"
)

// suspend puts on disk that a job waits for a decision. Its lane is held for it, without
// a goroutine.
func (c *carrier) suspend(j *jobs.Job) error {
	j.State = jobs.StateWaiting
	err := c.jobs.SaveAlways(c.lanes.Work(), j)
	j.Suspended = err == nil
	if err != nil {
		j.State = jobs.StateOpen
		c.log.Error("a turn that waits for an approval cannot be stored, trying again", "job", j.Key(), "err", err)
	}
	return err
}

// holds looks after a job that waits for a decision from now on: that may have come
// meanwhile. Whoever waits next is told.
func (c *carrier) holds(h *lanes.Held, next *jobs.Job) {
	ctx, cancel := context.WithTimeout(c.lanes.Work(), jobs.WriteTimeout)
	defer cancel()
	if moved, err := c.gate.Decided(ctx, h.Cards); moved || err != nil {
		c.lanes.Free(h.Lane, h.Key())
	} else if next != nil {
		c.hint(ctx, h, next)
	}
}

// release lets the turn go on that waits for a card, which is over.
func (c *carrier) release(kept *cards.Kept) {
	if job, lane, ok := approval.TurnOf(kept); ok {
		c.lanes.Free(lane, job)
	}
}

// hint tells somebody who writes while a decision is due that their message waits, once
// for each wait.
func (c *carrier) hint(ctx context.Context, held *lanes.Held, j *jobs.Job) {
	if k := c.kinds.of(j); len(held.Cards) == 0 || !k.Turn || k.Lane != "" {
		return
	}
	_, err := c.desk.Post(ctx, "wait/"+held.Cards[0], j.Message.Chat, cards.Card{
		ReplyTo: j.Message.ID,
		Text:    "I am waiting for the decision above. Your message is next after that; /stop ends what waits.",
	})
	if err != nil {
		c.log.Warn("nobody could be told that a message waits for an approval", "job", j.Key(), "err", err)
	}
}
