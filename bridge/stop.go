package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
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
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

const stopName = "stop"

var stopWords = regexp.MustCompile(`(?i)^(stop|halt|cancel|wait)[.!…]*$`)

// isStopWord reports whether a message is only a word that asks to stop. While the open questions of the
// chat are its sender's, it means /stop; otherwise it is for the model.
func isStopWord(m chats.Message) bool {
	return len(m.Files) == 0 && len(m.Skipped) == 0 && stopWords.MatchString(strings.TrimSpace(m.Text))
}

// interrupter ends running and waiting jobs, for /stop, stop buttons and /clear, and undoes a /clear.
type interrupter struct {
	platforms    map[string]chats.Platform
	workers      *workerRegistry
	store        storage.Store
	jobs         queue.Store
	queue        *queue.Queue
	inserter     *inserter
	completer    *completer
	adminChecker *adminChecker
	observer     *privacy.Observer
	cards        *interact.Cards
	background   *background
	now          func() time.Time
	log          *slog.Logger
}

// stop runs /stop and returns its answer. It ends older jobs once more, because the first attempt may
// have failed or happened before a restart.
func (s *interrupter) stop(ctx context.Context, j *queue.Run, _ string) (string, error) {
	session, err := s.endOlder(ctx, j)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace("Stopped." + endedText(false, j.Dropped))
	if !j.Interrupted && j.Dropped == 0 && session.StoppedAt < j.Seq {
		text = "There is nothing to stop."
	}
	return s.background.answer(ctx, j, text)
}

// endOlder ends the jobs that were accepted before a /stop, and records their number in its job j.
func (s *interrupter) endOlder(ctx context.Context, j *queue.Run) (conversation.Session, error) {
	chat := s.queue.CurrentChat(j.Message.Chat)
	// Store it first: a tool may hang, and a restart must not continue its turn.
	session, err := conversation.Current(ctx, s.store, chat)
	for err == nil && session.StoppedAt < j.Seq && s.queue.HasPending(chat, 0, j.Seq) {
		if session, err = session.Stop(ctx, s.store, j.Seq); errors.Is(err, storage.ErrConflict) {
			session, err = conversation.Current(ctx, s.store, chat) // a /clear may have changed it
		}
	}
	if err != nil {
		return session, err
	}
	running, waiting := s.queue.Interrupt(chat, j.Seq, conversation.ErrStopped)
	// If the job was found after a restart, the ended jobs are counted already.
	j.Interrupted, j.Dropped = j.Interrupted || running, max(j.Dropped, s.queue.CountMessages(waiting))
	// Close the jobs in the background.
	if settle := func() { s.completer.completeAll(waiting, receipts.Stopped) }; !s.queue.TryGo(settle) {
		settle()
	}
	return session, nil
}

// endOlderFound is endOlder for a /stop that an earlier run left open.
func (s *interrupter) endOlderFound(ctx context.Context, j *queue.Run, open []*queue.Run) error {
	var waiting []*queue.Run
	place := func(j *queue.Run) chats.Chat { return s.queue.CurrentChat(s.queue.ChatOf(j)) }
	for _, older := range open {
		if older.Seq >= j.Seq || place(older) != place(j) || s.workers.forJob(older).policy().SurvivesStop {
			continue
		}
		if older.Unstarted {
			waiting = append(waiting, older)
		} else {
			j.Interrupted = true
		}
	}
	if j.Dropped = s.queue.CountMessages(waiting); !j.Interrupted && j.Dropped == 0 {
		return nil
	}
	session, err := conversation.Current(ctx, s.store, s.queue.CurrentChat(j.Message.Chat))
	if err == nil {
		_, err = session.Stop(ctx, s.store, j.Seq)
	}
	if err != nil {
		return fmt.Errorf("stop the jobs before %s: %w", j.Key(), err)
	}
	return nil
}

const clearedText = "Conversation cleared: it is closed, and the tools that I was using are put away. Nothing is deleted: your files are kept, and I can still find earlier messages when I search."

func (s *interrupter) clear(ctx context.Context, j *queue.Run, _ string) (string, error) {
	if !s.adminChecker.canClear(ctx, j.Message) {
		outbox.MakeEphemeral(j)
		return "Sorry, only an administrator or the person who began this thread can clear it.", nil
	}
	session, err := conversation.Current(ctx, s.store, j.Message.Chat)
	if err != nil {
		return "", err
	}
	// A waiting or running message may write its question to the log after the check below, before it
	// ends.
	empty := !s.queue.HasPending(j.Message.Chat, session.ClearedAt, j.Seq)
	// After an erasure, tool groups can still be loaded. An unreadable log is cleared, too.
	if begun, err := conversation.HasBegun(ctx, s.store, session.Log()); begun || err != nil {
		if err != nil {
			s.log.Warn("cleared a conversation that cannot be read", "log", session.Log(), "err", err)
		}
		empty = false
	}
	// Store the new session before ending the jobs of the old one: a crash in between leaves jobs that
	// are older than the session, and those are closed after the restart.
	if session, err = session.Clear(ctx, s.store, &j.Job, empty); err != nil {
		return "", err
	}
	if err := j.Author(s.store).Record(ctx, "clear", session.EndedLog(&j.Job)); err != nil {
		return "", err
	}
	if err := s.observer.Drop(ctx, j.Message.Chat); err != nil {
		return "", err
	}
	if err := interact.DropLasting(ctx, s.store, session.EndedLog(&j.Job)); err != nil {
		return "", err
	}
	interrupted, waiting := s.queue.Interrupt(j.Message.Chat, j.Seq, conversation.ErrCleared)
	s.completer.completeAll(waiting, receipts.Cleared)
	tasks, n := s.background.clear(j)
	s.completer.completeAll(tasks, receipts.Cleared)
	text := clearedText + endedText(interrupted || j.Interrupted, s.queue.CountMessages(waiting)+j.Dropped)
	if n > 0 {
		text += " I cancelled " + wording.Plural(n, "background task", "background tasks") + "."
	}
	return s.offerUndo(ctx, j, session, text)
}

// endedText returns the sentences about the jobs that a command has ended.
func endedText(running bool, waiting int) string {
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

// handleStopPress answers the press of a stop button. It stops the answer once more, because the attempt
// on acceptance may have failed.
func (s *interrupter) handleStopPress(ctx context.Context, j *queue.Run) error {
	if err := s.stopAnswer(ctx, j); err != nil {
		return err
	}
	toast := "This answer is already finished."
	if j.Interrupted {
		toast = "Stopped."
	}
	s.cards.ShowToast(ctx, j.Message, toast)
	s.completer.completeLater(j, receipts.Done)
	return nil
}

// stopAnswer ends only the answer whose stop button was pressed; the next message is then answered. The
// stop is stored before the turn is interrupted, as in [interrupter.endOlder].
func (s *interrupter) stopAnswer(ctx context.Context, j *queue.Run) error {
	open, _, err := s.jobs.ListOpen(ctx, j.Message.Chat.WithoutThread().String()+"/", queue.AllChats)
	for _, older := range open {
		if !s.isStopTarget(j, older) {
			continue
		}
		if err := s.recordStop(ctx, j, older); err != nil {
			return err
		}
		s.queue.InterruptJob(j.Message.Chat, older.Key(), conversation.ErrStopped)
		return nil
	}
	return err
}

// stopAnswerFound is stopAnswer for a press that an earlier run left open.
func (s *interrupter) stopAnswerFound(ctx context.Context, j *queue.Run, open []*queue.Run) error {
	for _, older := range open {
		if s.isStopTarget(j, older) {
			return s.recordStop(ctx, j, older)
		}
	}
	return nil
}

// recordStop stores in the session that a press has ended an answer.
func (s *interrupter) recordStop(ctx context.Context, j, older *queue.Run) error {
	err := storage.Retry(ctx, func() error { // a /clear may change the session meanwhile
		session, err := conversation.Current(ctx, s.store, s.queue.CurrentChat(j.Message.Chat))
		if err == nil {
			_, err = session.StopAnswer(ctx, s.store, older.Seq)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("stop the answer to %s: %w", older.Key(), err)
	}
	j.Interrupted = true
	return nil
}

// isStopTarget reports whether the press j belongs to the preview of the open job older.
func (s *interrupter) isStopTarget(j, older *queue.Run) bool {
	w, ok := older.Work.(*turn.Work)
	return ok && w.Preview != nil && w.Preview.Token == outbox.StopToken(j.Message) && older.Seq < j.Seq
}
