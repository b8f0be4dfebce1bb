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

// Submission is a task to be answered in a chat.
type Submission struct {
	// Key identifies it in its chat: a second submission under the same key is dropped, for
	// [receipts.Age] after the first was closed. It has no slashes, colons or spaces.
	Key string
	// Chat is the chat of the answer.
	Chat chats.Chat
	// User is the platform's id of the task's user. Their role is checked when the task runs.
	User string
	// Direct says that Chat is a direct chat with this user.
	Direct bool
	// Title is shown above the answer.
	Title string
	// Text is the question for the agent.
	Text string
	// Trigger is what started the task.
	Trigger receipts.Trigger
}

// TaskResult is the result of a [Submission].
type TaskResult struct {
	Key  string
	Chat chats.Chat
	// Owner is the owner of the task, as in [toolgroups.Scope].
	Owner string
	// Session names the log of its conversation; empty if it never began.
	Session string
	// MessageID is the platform's id of the first delivered message. It is empty if not all parts were
	// delivered.
	MessageID string
	// Incident is the id under which the reason for a missing answer or a dead letter is logged; the
	// delivered text then says so. Empty if there was an answer.
	Incident string
	// Refused says that a budget did not allow an answer; the delivered text says so.
	Refused bool
	// Silent says that it ended without an answer because there was nothing to report.
	Silent bool
	// State is the final state.
	State receipts.State
}

// ErrBusy is returned by [Bridge.Submit] if too many tasks of the chat wait.
var ErrBusy = errors.New("bridge: too many tasks wait in this chat")

// Submit enqueues a task, which is answered in its chat. When it returns nil, the task is on disk and
// is completed like a message. It has a conversation of its own, which no /clear of the chat touches;
// the tasks of a chat are answered one after another, concurrently with its messages. Only the final
// answer is delivered, under the title.
//
// Submit waits until Run has loaded the jobs of a former run.
func (b *Bridge) Submit(ctx context.Context, s Submission) error {
	if err := b.ready(ctx); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	m := chats.Message{Chat: s.Chat, ID: s.Key, Kind: receipts.KindTask, User: s.User, Direct: s.Direct, Text: s.Text, Time: b.cfg.Now()}
	if err := b.inserter.check(m); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	j := b.inserter.New(m)
	j.Args = &receipts.Task{Title: s.Title, Trigger: s.Trigger}
	outbox.Of(j).Heading = heading(s)
	release, err := b.claimer.accepting.Acquire(ctx, b.queue.ChatOf(j).String())
	if err != nil {
		return fmt.Errorf("submit %s to %s: %w", s.Key, s.Chat, err)
	}
	defer release()
	if err := b.limiter.roomFor(ctx, j); err != nil {
		return fmt.Errorf("submit %s to %s: %w", s.Key, s.Chat, err)
	}
	if err := b.inserter.insert(ctx, j); errors.Is(err, storage.ErrInvalid) {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	} else if err != nil {
		return fmt.Errorf("submit %s to %s: %w", s.Key, s.Chat, err)
	}
	return nil
}

// heading returns the heading of a task's answer.
func heading(s Submission) string {
	if s.Trigger.Hook != "" {
		return `\[Webhook\] ` + wording.Escape(s.Title)
	}
	return `\[Scheduled\] ` + wording.Escape(s.Title)
}

// answer returns the answer of a task; none if that says that there is nothing to report. Files that
// its tools made are sent all the same.
func (w *taskWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	text, err := w.turns.Answer(ctx, j)
	if err != nil || outbox.Of(j).Parts != nil || !turn.TaskOf(j).Ends(text) {
		return text, err
	}
	if len(outbox.Of(j).Files) == 0 {
		ended := *turn.TaskOf(j)
		ended.Silent = true
		j.Args, outbox.Of(j).Parts = &ended, []receipts.Part{}
	}
	return "", nil
}

// finish reports the result of a task that is about to be closed. After a crash it may report again.
func (w *taskWorker) finish(ctx context.Context, j *queue.Run) error {
	if err := w.gate.Invalidate(ctx, j); err != nil || w.done == nil {
		return err
	}
	r := TaskResult{Key: j.Message.ID, Chat: j.Message.Chat, Owner: j.Message.Owner(), Incident: cmp.Or(j.Incident, outbox.Of(j).DeadLetter), Refused: turn.Of(j).Refused, State: j.State}
	r.Silent = turn.TaskOf(j).Silent
	if j.State != receipts.Revoked {
		r.Session = conversation.TaskLog(j.Origin(), r.Key)
	}
	if j.State == receipts.Done {
		for _, p := range outbox.Of(j).Parts {
			r.MessageID = cmp.Or(r.MessageID, p.ID)
		}
	}
	if err := w.done(ctx, r); err != nil {
		return fmt.Errorf("report task %s: %w", j.Key(), err)
	}
	return nil
}
