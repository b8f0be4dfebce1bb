package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
)

const stopName = "stop"

// stops ends running and waiting jobs: /stop for good, /clear with its conversation.
type stops struct {
	platforms map[string]chats.Platform
	workers   *workers
	store     storage.Store
	jobs      queue.Store
	queue     *queue.Queue
	inserter  *inserter
	completer *completer
	admins    *admins
	observer  *privacy.Observer
	cards     *interact.Cards
	now       func() time.Time
	log       *slog.Logger
}

// stop returns what a /stop has ended. It ends older jobs once more: the first attempt may have failed,
// or been in a former life.
func (s *stops) stop(ctx context.Context, j *queue.Run, _ string) (string, error) {
	session, err := s.endOlder(ctx, j)
	if err != nil {
		return "", err
	}
	if !j.Interrupted && j.Dropped == 0 && session.StoppedAt < j.Seq {
		return "There is nothing to stop.", nil
	}
	return strings.TrimSpace("Stopped." + ended(false, j.Dropped)), nil
}

// endOlder ends what was accepted before a /stop, and records in the job what that was.
func (s *stops) endOlder(ctx context.Context, j *queue.Run) (conversation.Session, error) {
	chat := s.queue.CurrentChat(j.Message.Chat)
	// Store it first: a tool may hang, and a restart must not continue its turn.
	session, err := conversation.Current(ctx, s.store, chat)
	for err == nil && session.StoppedAt < j.Seq && s.queue.Pending(chat, 0, j.Seq) {
		if session, err = session.Stop(ctx, s.store, j.Seq); errors.Is(err, storage.ErrConflict) {
			session, err = conversation.Current(ctx, s.store, chat) // a /clear may have changed it
		}
	}
	if err != nil {
		return session, err
	}
	running, waiting := s.queue.Interrupt(chat, j.Seq, conversation.ErrStopped)
	// If a restart found the job, it is counted already.
	j.Interrupted, j.Dropped = j.Interrupted || running, max(j.Dropped, s.queue.Count(waiting))
	// The caller continues meanwhile.
	if settle := func() { s.completer.completeAll(waiting, receipts.Stopped) }; !s.queue.TryGo(settle) {
		settle()
	}
	return session, nil
}

// endFound is endOlder for a /stop that a former run left open.
func (s *stops) endFound(ctx context.Context, j *queue.Run, open []*queue.Run) error {
	var waiting []*queue.Run
	place := func(j *queue.Run) chats.Chat { return s.queue.CurrentChat(s.queue.ChatOf(j)) }
	for _, older := range open {
		if older.Seq >= j.Seq || place(older) != place(j) || s.workers.of(older).declares().lasting {
			continue
		}
		if older.Unstarted {
			waiting = append(waiting, older)
		} else {
			j.Interrupted = true
		}
	}
	if j.Dropped = s.queue.Count(waiting); !j.Interrupted && j.Dropped == 0 {
		return nil
	}
	session, err := conversation.Current(ctx, s.store, s.queue.CurrentChat(j.Message.Chat))
	if err == nil {
		_, err = session.Stop(ctx, s.store, j.Seq)
	}
	if err != nil {
		return fmt.Errorf("stop what was accepted before %s: %w", j.Key(), err)
	}
	return nil
}

const clearedText = "Conversation cleared: it is closed, and its tools are unloaded. Nothing is deleted: your files are kept, and I can still find earlier messages when I search."

func (s *stops) clear(ctx context.Context, j *queue.Run, _ string) (string, error) {
	if !s.admins.mayClear(ctx, j.Message) {
		outbox.MakeEphemeral(j)
		return "Sorry, only an administrator or the person who began this thread can clear it.", nil
	}
	session, err := conversation.Current(ctx, s.store, j.Message.Chat)
	if err != nil {
		return "", err
	}
	// A waiting or running message may write its question to the log between the check below and its
	// end.
	empty := !s.queue.Pending(j.Message.Chat, session.ClearedAt, j.Seq)
	// Erased records leave groups loaded. An unreadable record is one more reason to begin again.
	if begun, err := conversation.HasBegun(ctx, s.store, session.Log()); begun || err != nil {
		if err != nil {
			s.log.Warn("cleared a conversation that cannot be read", "log", session.Log(), "err", err)
		}
		empty = false
	}
	// First the new session, then the end of the old one's jobs: a crash in between leaves jobs that
	// are older than the session, and those are closed.
	if session, err = session.Clear(ctx, s.store, &j.Job, empty); err != nil {
		return "", err
	}
	if err := j.Author(s.store).Record(ctx, "clear", session.EndedLog(&j.Job)); err != nil {
		return "", err
	}
	if err := s.observer.Drop(ctx, j.Message.Chat); err != nil {
		return "", err
	}
	interrupted, waiting := s.queue.Interrupt(j.Message.Chat, j.Seq, conversation.ErrCleared)
	s.completer.completeAll(waiting, receipts.Cleared)
	return s.confirm(ctx, j, session, clearedText+ended(interrupted || j.Interrupted, s.queue.Count(waiting)+j.Dropped))
}

// ended says what a command has ended.
func ended(running bool, waiting int) string {
	var text string
	if running {
		text += " I stopped what I was doing."
	}
	switch waiting {
	case 0:
	case 1:
		text += " One waiting message was dropped."
	default:
		text += fmt.Sprintf(" %d waiting messages were dropped.", waiting)
	}
	return text
}

// pressed answers the press of a stop button, which took effect when it came.
func (s *stops) pressed(ctx context.Context, j *queue.Run) error {
	if err := s.halt(ctx, j); err != nil {
		return err
	}
	toast := "This answer is already finished."
	if j.Interrupted {
		toast = "Stopped."
	}
	s.cards.Toast(ctx, j.Message, toast)
	s.completer.completeLater(j, receipts.Done)
	return nil
}

// halt ends the answer whose stop button was pressed, and nothing else: the next message is answered
// then. It is stored first, as in [stops.endOlder].
func (s *stops) halt(ctx context.Context, j *queue.Run) error {
	open, _, err := s.jobs.Open(ctx, j.Message.Chat.WithoutThread().String()+"/", queue.AllChats)
	for _, older := range open {
		if !s.halts(j, older) {
			continue
		}
		if err := s.halted(ctx, j, older); err != nil {
			return err
		}
		s.queue.InterruptJob(j.Message.Chat, older.Key(), conversation.ErrStopped)
		return nil
	}
	return err
}

// haltFound is halt for a press that a former run left open.
func (s *stops) haltFound(ctx context.Context, j *queue.Run, open []*queue.Run) error {
	for _, older := range open {
		if s.halts(j, older) {
			return s.halted(ctx, j, older)
		}
	}
	return nil
}

// halted stores that a press has ended an answer.
func (s *stops) halted(ctx context.Context, j, older *queue.Run) error {
	err := storage.ErrConflict
	for errors.Is(err, storage.ErrConflict) { // a /clear may change the session meanwhile
		var session conversation.Session
		if session, err = conversation.Current(ctx, s.store, s.queue.CurrentChat(j.Message.Chat)); err == nil {
			_, err = session.StopOne(ctx, s.store, older.Seq)
		}
	}
	if err != nil {
		return fmt.Errorf("stop the answer to %s: %w", older.Key(), err)
	}
	j.Interrupted = true
	return nil
}

// halts reports whether a press is about the answer to a message that is not over.
func (s *stops) halts(j, older *queue.Run) bool {
	w, ok := older.Work.(*turn.Work)
	return ok && w.Preview != nil && w.Preview.Token == outbox.StopToken(j.Message) && older.Seq < j.Seq
}
