package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
)

// suspender suspends jobs that wait for users or background tasks.
type suspender struct {
	platforms map[string]chats.Platform
	workers   *workerRegistry
	store     storage.Store
	jobs      queue.Store
	queue     *queue.Queue
	inserter  *inserter
	sender    *outbox.Sender
	cards     *interact.Cards
	gate      *interact.Gate
	announcer *announcer
	now       func() time.Time
	log       *slog.Logger
}

// suspend stores that a job waits for a decision or for background tasks. Meanwhile its chat is blocked,
// without a goroutine.
func (s *suspender) suspend(j *queue.Run) error {
	j.State = receipts.Waiting
	ctx, cancel := s.queue.WriteContext()
	defer cancel()
	err := s.announcer.announce(ctx, j, false) // the wait may be long
	if err == nil {
		err = s.jobs.WriteFenced(ctx, j, func() error { return s.saveWaiting(ctx, j) })
	}
	j.Suspended = err == nil
	j.WaitingSince = s.now()
	if err != nil {
		j.State = receipts.Open
		s.log.Error("a suspended turn cannot be stored, trying again", "job", j.Key(), "err", err)
	}
	return err
}

// saveWaiting stores a job whose turn waits for a user, and ends its preview in the same write, because
// the question is posted below the preview and later text has to appear below the question.
func (s *suspender) saveWaiting(ctx context.Context, j *queue.Run) error {
	if outbox.DeliveryOf(j).OpenPreview() == nil {
		return s.jobs.Put(ctx, j)
	}
	e, left := s.inserter.newPreviewEnd(j, receipts.Waiting), j.Clone()
	outbox.DeliveryOf(left).Preview = nil
	record, err := left.Record()
	if err != nil {
		return err
	}
	end, err := e.NewOps()
	if err != nil {
		return err
	}
	if e.Rev, err = s.store.Write(ctx, append(end, record)...); err != nil {
		if adopted := s.inserter.Adopt(ctx, e.Key()); adopted != nil { // the write may have succeeded
			s.log.Warn("a preview may stay unfinished", "job", j.Key(), "err", adopted)
		}
		return fmt.Errorf("store job %s and the end of its preview: %w", j.Key(), err)
	}
	outbox.DeliveryOf(j).Preview, j.Rev = nil, e.Rev
	if s.jobs.AssignSeq(e); !e.Unclaimed {
		_ = s.queue.Enqueue(e)
	}
	return nil
}

// handleSuspended shows that a job waits for a decision, unless the decision has come already, and
// notifies the sender of the next message.
func (s *suspender) handleSuspended(h *queue.Suspended, next *queue.Run) {
	ctx, cancel := context.WithTimeout(s.queue.Context(), queue.WriteTimeout)
	defer cancel()
	if moved, err := s.gate.AnyDecided(ctx, h.Cards); moved || err != nil {
		s.queue.Resume(h.Chat, h.Key())
		return
	}
	if !awaitsTasks(h) {
		s.showWaiting(ctx, h.Chat, true)
	}
	if next != nil {
		s.notifyWaiting(ctx, h, next)
	}
}

// showWaiting shows, or stops showing, that a turn waits for a user, on platforms that support it.
func (s *suspender) showWaiting(ctx context.Context, chat chats.Chat, on bool) {
	if w, ok := s.platforms[chat.Platform].(chats.WaitIndicator); ok {
		w.SetWaiting(ctx, chat, on)
	}
}

// showResumed stops showing that a turn waits for a user, whatever has ended the wait.
func (s *suspender) showResumed(ctx context.Context, j *queue.Run) {
	if _, tools := turn.PendingDecisions(j); len(tools) > 0 { // otherwise it waited for background tasks
		s.showWaiting(ctx, s.queue.ChatOf(j), false)
	}
}

// endWait records that a running job whose attempt has ended waits for no answer.
func (s *suspender) endWait(j *queue.Run) {
	s.queue.Unpark(j)
	if j.State != receipts.Waiting { // otherwise execute has shown it
		s.showResumed(s.queue.Context(), j)
	}
}

// Park implements [interact.Turns]. The turn waits for a user's answer to a tool's question, and another
// turn may run meanwhile. The sender of the next message is notified.
func (s *suspender) Park(ctx context.Context, j *queue.Run) error {
	d := outbox.DeliveryOf(j)
	if d.StopTyping != nil {
		d.StopTyping()
	}
	if d.ShowPreview != nil {
		d.ShowPreview(false)
	}
	if err := s.Announce(ctx, j); err != nil { // the wait may be long
		return err
	}
	if err := s.jobs.WriteFenced(ctx, j, func() error { return s.saveWaiting(ctx, j) }); err != nil {
		return err
	}
	h, next := s.queue.Park(ctx, j)
	s.showWaiting(ctx, s.queue.ChatOf(j), true)
	if next != nil {
		s.notifyWaiting(ctx, h, next)
	}
	return nil
}

// Announce implements [interact.Turns].
func (s *suspender) Announce(ctx context.Context, j *queue.Run) error {
	return s.announcer.announce(ctx, j, false)
}

// Unpark implements [interact.Turns].
func (s *suspender) Unpark(ctx context.Context, j *queue.Run) {
	s.queue.Unpark(j)
	s.showWaiting(ctx, s.queue.ChatOf(j), false)
	d := outbox.DeliveryOf(j)
	if d.StopTyping != nil {
		d.StopTyping = s.sender.ShowTyping(ctx, outbox.Address(j))
	}
	if d.ShowPreview != nil {
		d.ShowPreview(true)
	}
}

// AwaitSlot implements [interact.Turns].
func (s *suspender) AwaitSlot(ctx context.Context, j *queue.Run) { s.queue.AwaitSlot(ctx, j) }

var _ interact.Turns = (*suspender)(nil)

// notifyWaiting tells a user who writes during a wait that their message waits, once for each wait. A wait
// for background tasks is ended instead, also by a job that no user wrote, such as an erasure.
func (s *suspender) notifyWaiting(ctx context.Context, held *queue.Suspended, j *queue.Run) {
	k := s.workers.forJob(j).policy()
	switch {
	case len(held.Cards) == 0 || k.SubQueue != "":
		return
	case awaitsTasks(held):
		if hasWaitingMessage(s.queue, held.Chat) {
			s.queue.Resume(held.Chat, held.Key())
		}
		return
	case !k.NeedsSlot || !k.FromUser:
		return
	}
	_, err := s.cards.Post(ctx, "wait/"+held.Cards[0], j.Message.Chat, interact.Card{
		ReplyTo: j.Message.ReplyTarget(),
		Text:    "I am waiting for the decision above. Your message comes next; /stop cancels everything that waits.",
	})
	if err != nil {
		s.log.Warn("the notice that a message waits cannot be posted", "job", j.Key(), "err", err)
	}
}
