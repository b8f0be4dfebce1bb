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
	"oneclaw/storage"
)

// suspender suspends jobs that wait for users.
type suspender struct {
	platforms map[string]chats.Platform
	workers   *workers
	store     storage.Store
	jobs      queue.Store
	queue     *queue.Queue
	inserter  *inserter
	sender    *outbox.Sender
	cards     *interact.Cards
	gate      *interact.Gate
	now       func() time.Time
	log       *slog.Logger
}

// suspend stores that a job waits for a decision. Its chat is blocked meanwhile, without a goroutine.
func (s *suspender) suspend(j *queue.Run) error {
	j.State = receipts.Waiting
	ctx, cancel := s.queue.WriteContext()
	defer cancel()
	err := s.jobs.WriteFenced(ctx, j, func() error { return s.leave(ctx, j) })
	j.Suspended = err == nil
	j.Since = s.now()
	if err != nil {
		j.State = receipts.Open
		s.log.Error("a turn that waits for an approval cannot be stored, trying again", "job", j.Key(), "err", err)
	}
	return err
}

// leave stores a job whose turn waits for a decision, and ends its preview in the same write: the
// question comes below it, and later text below the question.
func (s *suspender) leave(ctx context.Context, j *queue.Run) error {
	if outbox.Of(j).OpenPreview() == nil {
		return s.jobs.Put(ctx, j)
	}
	e, left := s.inserter.endOfPreview(j, receipts.Waiting), j.Clone()
	outbox.Of(left).Preview = nil
	record, err := left.Record()
	if err != nil {
		return err
	}
	end, err := e.Record()
	if err != nil {
		return err
	}
	if e.Rev, err = s.store.Write(ctx, record, end); err != nil {
		if adopted := s.inserter.Adopt(ctx, e.Key()); adopted != nil { // the write may have succeeded
			s.log.Warn("a preview may not end", "job", j.Key(), "err", adopted)
		}
		return fmt.Errorf("store job %s and the end of its preview: %w", j.Key(), err)
	}
	outbox.Of(j).Preview, j.Rev = nil, e.Rev
	s.inserter.Enqueue(e)
	return nil
}

// suspended handles a job that begins to wait for a decision, which may have come meanwhile. The sender
// of the next message is told.
func (s *suspender) suspended(h *queue.Suspended, next *queue.Run) {
	ctx, cancel := context.WithTimeout(s.queue.Context(), queue.WriteTimeout)
	defer cancel()
	if moved, err := s.gate.Decided(ctx, h.Cards); moved || err != nil {
		s.queue.Resume(h.Chat, h.Key())
		return
	}
	s.showWaiting(ctx, h.Chat, true)
	if next != nil {
		s.hint(ctx, h, next)
	}
}

// showWaiting shows that a turn waits for a decision, on platforms that can.
func (s *suspender) showWaiting(ctx context.Context, chat chats.Chat, on bool) {
	if w, ok := s.platforms[chat.Platform].(chats.WaitIndicator); ok {
		w.SetWaiting(ctx, chat, on)
	}
}

// Park implements [interact.Turns]: a turn waits for a user's answer to a tool's question, and another
// may run meanwhile. The sender of the next message is told.
func (s *suspender) Park(ctx context.Context, j *queue.Run) error {
	d := outbox.Of(j)
	if d.StopTyping != nil {
		d.StopTyping()
	}
	if d.ShowPreview != nil {
		d.ShowPreview(false)
	}
	if err := s.jobs.WriteFenced(ctx, j, func() error { return s.leave(ctx, j) }); err != nil {
		return err
	}
	h, next := s.queue.Park(j)
	s.showWaiting(ctx, s.queue.ChatOf(j), true)
	if next != nil {
		s.hint(ctx, h, next)
	}
	return nil
}

// Unpark implements [interact.Turns].
func (s *suspender) Unpark(ctx context.Context, j *queue.Run) {
	s.queue.Unpark(j)
	s.showWaiting(ctx, s.queue.ChatOf(j), false)
	d := outbox.Of(j)
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

// hint tells a user who writes while a decision is due that their message waits, once for each wait.
func (s *suspender) hint(ctx context.Context, held *queue.Suspended, j *queue.Run) {
	if k := s.workers.of(j).declares(); len(held.Cards) == 0 || !k.NeedsSlot || k.SubQueue != "" {
		return
	}
	_, err := s.cards.Post(ctx, "wait/"+held.Cards[0], j.Message.Chat, interact.Card{
		ReplyTo: j.Message.ReplyTarget(),
		Text:    "I am waiting for the decision above. Your message comes next; /stop cancels everything that waits.",
	})
	if err != nil {
		s.log.Warn("the user is not told that a message waits for an approval", "job", j.Key(), "err", err)
	}
}
