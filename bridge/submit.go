package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

// Submission is a task whose answer goes to a chat.
type Submission struct {
	// Key identifies the task in its chat: another submission with the same key is dropped, for
	// [receipts.Age] after the first was closed. It must not contain slashes, colons or spaces.
	Key string
	// Chat is the chat that gets the answer.
	Chat chats.Chat
	// User is the platform's id of the task's user. Their role is checked when the task runs.
	User string
	// Direct says that Chat is a direct chat with this user.
	Direct bool
	// Title is shown above the answer.
	Title string
	// Text is the question for the agent.
	Text string
	// Trigger is the origin of the task, such as a webhook.
	Trigger receipts.Trigger
}

// TaskResult is the result of a [Submission].
type TaskResult struct {
	Key  string
	Chat chats.Chat
	// Owner is the owner of the task, as in [toolgroups.Scope].
	Owner string
	// Session is the log of the task's conversation; empty if the access of the task's user was revoked.
	Session string
	// MessageID is the platform's id of the first delivered message. It is empty if not all parts were
	// delivered.
	MessageID string
	// Incident is the id under which the reason for a missing answer or a dead letter is logged, and
	// which the delivered text contains. It is empty if there was an answer.
	Incident string
	// Refused says that a budget did not allow an answer, as the delivered text explains.
	Refused bool
	// Silent says that the task ended without an answer because it had nothing to report.
	Silent bool
	// Paused says that the task did not run, because the chat takes no messages from the bot.
	Paused bool
	// State is the final state of the task's job.
	State receipts.State
}

// ErrBusy is returned by [Bridge.Submit] if too many tasks of the chat wait.
var ErrBusy = errors.New("bridge: too many tasks wait in this chat")

// Submit enqueues a task, which is answered in its chat. When it returns nil, the task is on disk and
// is completed like a message. It has its own conversation, which a /clear in the chat does not end.
// The tasks of a chat are answered one after another, concurrently with its messages. Only the final
// answer is delivered, under the title.
//
// Submit returns [ErrPaused] if the unattended runs of the user are used up for the day.
//
// Submit waits until Run has loaded the jobs of an earlier run.
func (b *Bridge) Submit(ctx context.Context, s Submission) error {
	if err := b.AwaitReady(ctx); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	m := chats.Message{Chat: s.Chat, ID: s.Key, Kind: receipts.KindTask, User: s.User, Direct: s.Direct, Text: s.Text, Time: b.cfg.Now()}
	if err := b.inserter.validateMessage(m); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	j := b.inserter.New(m)
	j.Args = &receipts.Task{Title: s.Title, Trigger: s.Trigger}
	outbox.DeliveryOf(j).Heading = heading(s)
	release, err := b.claimer.accepting.Acquire(ctx, b.queue.ChatOf(j).String())
	if err != nil {
		return fmt.Errorf("submit %s to %s: %w", s.Key, s.Chat, err)
	}
	defer release()
	if err := b.limiter.checkTaskRoom(ctx, j); err != nil {
		return fmt.Errorf("submit %s to %s: %w", s.Key, s.Chat, err)
	}
	if err := b.unattended.insert(ctx, j); errors.Is(err, storage.ErrInvalid) {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	} else if err != nil {
		return fmt.Errorf("submit %s to %s: %w", s.Key, s.Chat, err)
	}
	return nil
}

// heading returns the heading of a task's answer.
func heading(s Submission) string {
	if s.Trigger.Hook != "" {
		return `\[Webhook\] ` + wording.EscapeMarkdown(s.Title)
	}
	return `\[Scheduled\] ` + wording.EscapeMarkdown(s.Title)
}

// answer returns the answer of a task; none if the agent says that there is nothing to report. Files
// that the tools of the task made are sent in any case.
func (w *taskWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	if paused, err := w.pauses(ctx, j); paused || err != nil {
		return "", err
	}
	if err := w.checkStands(ctx, j); err != nil {
		return "", err
	}
	text, err := w.turns.Answer(ctx, j)
	if err != nil || outbox.DeliveryOf(j).Parts != nil || !turn.TaskOf(j).IsSilence(text) {
		return text, err
	}
	if len(outbox.DeliveryOf(j).Files) == 0 {
		ended := *turn.TaskOf(j)
		ended.Silent = true
		j.Args, outbox.DeliveryOf(j).Parts = &ended, []receipts.Part{}
	}
	return "", nil
}

// pauses ends a task whose chat takes no messages, and reports whether it did. A task that has begun goes on.
func (w *taskWorker) pauses(ctx context.Context, j *queue.Run) (bool, error) {
	if !j.Unstarted || outbox.DeliveryOf(j).Parts != nil {
		return false, nil
	}
	paused, err := w.reach.isPaused(ctx, j.Message.Chat)
	if paused {
		ended := *turn.TaskOf(j)
		ended.Paused = true
		j.Args, outbox.DeliveryOf(j).Parts = &ended, []receipts.Part{}
	}
	return paused, err
}

// checkStands returns [conversation.ErrStopped] for a task that has not begun and may not any more. One that has begun goes on.
func (w *taskWorker) checkStands(ctx context.Context, j *queue.Run) error {
	if w.stands == nil || !j.Unstarted || outbox.DeliveryOf(j).Parts != nil {
		return nil
	}
	stands, err := w.stands(ctx, j.Message.Owner(), j.Message.ID, turn.TaskOf(j).Trigger)
	if err == nil && !stands {
		err = conversation.ErrStopped
	}
	return err
}

// finish reports the result of a task before its job is closed. After a crash it may report it again.
func (w *taskWorker) finish(ctx context.Context, j *queue.Run) error {
	err := w.messageWorker.finish(ctx, j)
	if err == nil {
		err = w.announcer.countSilent(ctx, j)
	}
	if err != nil || w.onDone == nil {
		return err
	}
	r := TaskResult{Key: j.Message.ID, Chat: j.Message.Chat, Owner: j.Message.Owner(), Incident: cmp.Or(j.Incident, outbox.DeliveryOf(j).DeadLetter), Refused: turn.WorkOf(j).Refused, State: j.State}
	r.Silent, r.Paused = turn.TaskOf(j).Silent, turn.TaskOf(j).Paused
	if j.State != receipts.Revoked {
		r.Session = conversation.TaskLog(j.Origin(), r.Key)
	}
	if j.State == receipts.Done {
		for _, p := range outbox.DeliveryOf(j).Parts {
			r.MessageID = cmp.Or(r.MessageID, p.ID)
		}
	}
	if err := w.onDone(ctx, r); err != nil {
		return fmt.Errorf("report the result of task %s: %w", j.Key(), err)
	}
	return nil
}
