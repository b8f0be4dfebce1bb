package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/rescue"
	"oneclaw/storage"
)

const stopName = "stop"

// stops ends what runs and what waits: /stop for good, /clear with its conversation.
type stops struct{ *services }

// stop says what a /stop has ended. It ends what is older once more: the first time may
// have failed, or been in a former life.
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

// now makes a job that stops others take effect that is on disk and not queued yet.
func (s *stops) now(j *queue.Run) {
	w, ok := s.workers.of(j).(stopper)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.lanes.Context()), queue.WriteTimeout)
	defer cancel()
	if err := w.now(ctx, j); err != nil {
		s.log.Error("a /stop has no effect before its turn", "job", j.Key(), "err", err)
	}
}

// endOlder ends what was accepted before a /stop, and keeps in it what that was.
func (s *stops) endOlder(ctx context.Context, j *queue.Run) (conversation.Session, error) {
	chat := s.lanes.CurrentChat(j.Message.Chat)
	// First on disk: a tool may hang on, and a restart must not go on with its turn.
	session, err := conversation.Current(ctx, s.store, chat)
	for err == nil && session.StoppedAt < j.Seq && s.lanes.Pending(chat, 0, j.Seq) {
		if session, err = session.Stop(ctx, s.store, j.Seq); errors.Is(err, storage.ErrConflict) {
			session, err = conversation.Current(ctx, s.store, chat) // a /clear may have changed it
		}
	}
	if err != nil {
		return session, err
	}
	running, waiting := s.lanes.Interrupt(chat, j.Seq, conversation.ErrStopped)
	// What a restart found is counted already.
	j.Interrupted, j.Dropped = j.Interrupted || running, max(j.Dropped, s.lanes.Count(waiting))
	// The caller goes on meanwhile.
	if settle := func() { s.settleAll(waiting, receipts.Stopped) }; !s.lanes.TryGo(settle) {
		settle()
	}
	return session, nil
}

// found makes each job take effect that stops others and that a former run left open, before anything
// else runs: it was on disk, and what it stops must not begin again.
func (s *stops) found(ctx context.Context, open []*queue.Run) error {
	for _, j := range open {
		if w, ok := s.workers.of(j).(stopper); ok {
			if err := w.found(ctx, j, open); err != nil {
				return err
			}
		}
	}
	return nil
}

// endFound is endOlder for a /stop among the jobs that a former run left open.
func (s *stops) endFound(ctx context.Context, j *queue.Run, open []*queue.Run) error {
	var waiting []*queue.Run
	lane := func(j *queue.Run) chats.Chat { return s.lanes.CurrentChat(s.lanes.ChatOf(j)) }
	for _, older := range open {
		if older.Seq >= j.Seq || lane(older) != lane(j) || s.workers.of(older).declares().lasting {
			continue
		}
		if older.Unstarted {
			waiting = append(waiting, older)
		} else {
			j.Interrupted = true
		}
	}
	if j.Dropped = s.lanes.Count(waiting); !j.Interrupted && j.Dropped == 0 {
		return nil
	}
	session, err := conversation.Current(ctx, s.store, s.lanes.CurrentChat(j.Message.Chat))
	if err == nil {
		_, err = session.Stop(ctx, s.store, j.Seq)
	}
	if err != nil {
		return fmt.Errorf("stop what was accepted before %s: %w", j.Key(), err)
	}
	return nil
}

const clearedText = "Conversation cleared: it is closed, and its tools are unloaded. We begin anew. " +
	"Nothing is deleted: your files are kept, and I can still find what was said when I search."

func (s *stops) clear(ctx context.Context, j *queue.Run, _ string) (string, error) {
	if !s.mayClear(ctx, j.Message) {
		outbox.MakeEphemeral(j)
		return "Sorry, only an administrator or whoever began this thread can clear it.", nil
	}
	session, err := conversation.Current(ctx, s.store, j.Message.Chat)
	if err != nil {
		return "", err
	}
	// A message that waits or is being answered may write its question to the log between
	// the look below and its end.
	empty := !s.lanes.Pending(j.Message.Chat, session.ClearedAt, j.Seq)
	// What was erased leaves groups loaded. A record that cannot be read is one more reason to
	// begin anew.
	if begun, err := conversation.HasBegun(ctx, s.store, session.Log()); begun || err != nil {
		if err != nil {
			s.log.Warn("cleared a conversation that cannot be read", "log", session.Log(), "err", err)
		}
		empty = false
	}
	// First the new session, then the end of what belongs to the old one: a crash in
	// between leaves jobs that are older than the session, and those are closed.
	if session, err = session.Clear(ctx, s.store, &j.Job, empty); err != nil {
		return "", err
	}
	if err := s.audit.Entry(j).Record(ctx, "clear", session.Ended(&j.Job)); err != nil {
		return "", err
	}
	if err := s.observer.Drop(ctx, j.Message.Chat); err != nil {
		return "", err
	}
	interrupted, waiting := s.lanes.Interrupt(j.Message.Chat, j.Seq, conversation.ErrCleared)
	s.settleAll(waiting, receipts.Cleared)
	return s.confirm(ctx, j, session, clearedText+ended(interrupted || j.Interrupted, s.lanes.Count(waiting)+j.Dropped))
}

// mayClear reports whether the sender may clear the chat of a message: in a direct
// chat its user; in a shared one configured admins, the user who began the thread, and
// those the platform calls administrators.
func (s *stops) mayClear(ctx context.Context, m chats.Message) bool {
	if m.Direct || s.isAdmin(m) || (m.Opener != "" && m.Opener == m.User) {
		return true
	}
	admins, ok := s.platforms[m.Chat.Platform].(chats.AdminChecker)
	if !ok {
		return false
	}
	is, err := admins.IsAdmin(ctx, m.Chat, m.User)
	if err != nil {
		s.log.Warn("administrators cannot be asked for", "chat", m.Chat.String(), "err", err)
	}
	return is && err == nil
}

// settleAll closes jobs that were taken out of their queue, later where that fails now.
func (s *stops) settleAll(jobs []*queue.Run, state receipts.State) {
	for _, j := range jobs {
		if rescue.Do(func() error { return s.carrier.settle(j, state) }) != nil {
			s.carrier.closeLater(j, state)
		}
	}
}

// ended says what a command has cut short.
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
