package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
)

// turnWatcher has turns observed: by the observer that the configuration names, and by the previews, where the
// platform shows any.
type turnWatcher struct{ *services }

var _ turn.Watcher = turnWatcher{}

// Watch implements [turn.Watcher].
func (w turnWatcher) Watch(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func()) {
	told, show, chat := w.cfg.Turns.Observe, func(agent.Event) {}, j.Message.Chat
	withhold, end = func() bool { return true }, func() {}
	if _, ok := w.platforms[chat.Platform].(chats.Previewer); ok && w.cfg.Turns.RedactPartial != nil && turn.TaskOf(j) == nil { // no user watches a task
		show, withhold, end = w.showing(j)
	} else if told == nil && w.cfg.Hooks.Trace == nil {
		return nil, withhold, end
	}
	observe = func(e agent.Event) {
		if show(e); told != nil {
			told(chat, e)
		}
	}
	if w.cfg.Hooks.Trace != nil {
		observe = w.cfg.Hooks.Trace.Watch(j, observe)
	}
	return observe, withhold, end
}

// showing is a preview that a question of a tool may end, and the answer to that begin again.
func (w turnWatcher) showing(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func()) {
	var now atomic.Pointer[outbox.Watch]
	begin := func() {
		watch := w.previews.Watch(j)
		now.Store(&watch)
	}
	begin()
	end = func() { now.Load().End() }
	outbox.Of(j).ShowPreview = func(on bool) {
		if on {
			begin()
		} else {
			end()
		}
	}
	return func(e agent.Event) { now.Load().Observe(e) }, func() bool { return now.Load().Withhold() }, end
}

// notes stand under a preview whose answer does not come.
var notes = map[receipts.State]string{
	receipts.Stopped: "⏹ Stopped.",
	receipts.Cleared: "⏹ Stopped: the conversation was cleared.",
	receipts.Barred:  "⏹ Stopped.",
	receipts.Waiting: "⏬ This goes on below.",
}

// endPreview has the preview of a turn that is about to be closed say that no more comes. It
// bears repeating.
func (c *carrier) endPreview(ctx context.Context, j *queue.Run) error {
	if w, ok := j.Work.(*turn.Work); !ok || w.OpenPreview() == nil {
		return nil
	}
	if err := c.intake.put(ctx, c.endOf(j, j.State)); err != nil {
		return fmt.Errorf("end the preview of %s: %w", j.Key(), err)
	}
	return nil
}

// endOf is the job that has the preview of another one end.
func (c *carrier) endOf(j *queue.Run, state receipts.State) *queue.Run {
	p, chat := outbox.Of(j).Preview, j.Message.Chat
	chat.ID = p.ChatID
	e := c.intake.job(chats.Message{Chat: chat, ID: queue.Hash(j.Key() + p.Token), Kind: outbox.KindPreview, User: "bot", Time: c.cfg.Now()})
	part := chats.Part{}
	if shown := c.sender.Render(j, p.Shown); len(shown) > 0 {
		part = shown[0].Part
	}
	if part.Note = notes[state]; part.Note == "" && p.Shown == "" {
		part.Note = "✔ Done." // it showed nothing but what was being done
	}
	d := outbox.Of(e)
	d.Preview, d.Parts = p, []receipts.Part{{Part: part, State: receipts.PartPending, Edit: p.ID, Last: true}}
	return e
}

// leave writes a job whose turn waits for a decision, and has its preview end with the same
// write: the question stands below that, and what comes then is to be shown below the question.
func (c *carrier) leave(ctx context.Context, j *queue.Run) error {
	if outbox.Of(j).OpenPreview() == nil {
		return c.jobs.Put(ctx, j)
	}
	e, left := c.endOf(j, receipts.Waiting), j.Clone()
	outbox.Of(left).Preview = nil
	record, err := left.Record()
	if err != nil {
		return err
	}
	end, err := e.Record()
	if err != nil {
		return err
	}
	if e.Rev, err = c.store.Write(ctx, record, end); err != nil {
		if adopted := c.intake.adopt(ctx, e.Key()); adopted != nil { // it may have happened
			c.log.Warn("a preview may not end", "job", j.Key(), "err", adopted)
		}
		return fmt.Errorf("store job %s and the end of its preview: %w", j.Key(), err)
	}
	outbox.Of(j).Preview, j.Rev = nil, e.Rev
	if c.jobs.AssignSeq(e); !e.Unclaimed {
		c.lanes.Enqueue(e)
	}
	return nil
}

// pressed answers the press of a button to stop. What it does was done when it came.
func (s *stops) pressed(ctx context.Context, j *queue.Run) error {
	if err := s.halt(ctx, j); err != nil {
		return err
	}
	toast := "This answer is over already."
	if j.Interrupted {
		toast = "Stopped."
	}
	s.cards.Toast(ctx, j.Message, toast)
	s.carrier.closeLater(j, receipts.Done)
	return nil
}

// halt ends the answer under which a button to stop was pressed, and nothing else: what waits
// behind it is answered next. First on disk, as with [stops.endOlder].
func (s *stops) halt(ctx context.Context, j *queue.Run) error {
	open, _, err := s.jobs.Open(ctx, j.Message.Chat.Whole().String()+"/", func(chats.Chat) bool { return true })
	for _, older := range open {
		if !s.halts(j, older) {
			continue
		}
		if err := s.halted(ctx, j, older); err != nil {
			return err
		}
		s.lanes.InterruptJob(j.Message.Chat, older.Key(), conversation.ErrStopped)
		return nil
	}
	return err
}

// haltFound is halt for a press among the jobs that a former run left open.
func (s *stops) haltFound(ctx context.Context, j *queue.Run, open []*queue.Run) error {
	for _, older := range open {
		if s.halts(j, older) {
			return s.halted(ctx, j, older)
		}
	}
	return nil
}

// halted puts on disk that a press has ended an answer.
func (s *stops) halted(ctx context.Context, j, older *queue.Run) error {
	err := storage.ErrConflict
	for errors.Is(err, storage.ErrConflict) { // a /clear may change the session meanwhile
		var session conversation.Session
		if session, err = conversation.Current(ctx, s.store, s.lanes.CurrentChat(j.Message.Chat)); err == nil {
			_, err = session.StopOne(ctx, s.store, older.Seq)
		}
	}
	if err != nil {
		return fmt.Errorf("stop the answer to %s: %w", older.Key(), err)
	}
	j.Interrupted = true
	return nil
}

// halts reports whether a press is about the answer to a message, which is not over.
func (s *stops) halts(j, older *queue.Run) bool {
	w, ok := older.Work.(*turn.Work)
	return ok && w.Preview != nil && w.Preview.Token == outbox.StopToken(j.Message) && older.Seq < j.Seq
}
