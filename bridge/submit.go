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
	// Key identifies it in its chat: a second submission under the same key is dropped,
	// for [ReceiptAge] after the first was closed. It has no slashes, colons or spaces.
	Key string
	// Chat is where the answer goes.
	Chat chats.Chat
	// User is the platform's id of whose task it is. What that user may do is judged
	// when the task runs.
	User string
	// Direct is true in a chat with this user alone.
	Direct bool
	// Title stands above the answer.
	Title string
	// Text is what the agent is asked.
	Text string
	// Trigger is what began it.
	Trigger receipts.Trigger
}

// TaskResult is what became of a [Submission].
type TaskResult struct {
	Key  string
	Chat chats.Chat
	// Owner is whose task it was, as in [toolgroups.Scope].
	Owner string
	// Session names the log of its conversation; empty where it never began.
	Session string
	// MessageID is the platform's id of the first message of what was delivered. It is
	// empty where not all of it was.
	MessageID string
	// Incident is where the log says why there was no answer, or why it was set aside; what
	// was delivered is then a sentence that says so. Empty where there was one.
	Incident string
	// Refused is true where a budget did not allow an answer; what was delivered says so.
	Refused bool
	// Silent is true where it ended without an answer because there was nothing to tell.
	Silent bool
	// State is how it ended.
	State receipts.State
}

// ErrBusy is returned by [Bridge.Submit] where too many tasks of the chat wait.
var ErrBusy = errors.New("bridge: too many tasks wait in this chat")

// Submit has a task answered in its chat. When it returns nil, the task is on disk and
// is carried to its end like a message. It has a conversation of its own, which no /clear
// of the chat touches; the tasks of a chat are answered one after another, beside its
// messages. Only the final answer is delivered, under the title.
//
// Submit waits until Run has found what a former run left open.
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

// heading stands above the answer of a task.
func heading(s Submission) string {
	if s.Trigger.Hook != "" {
		return `\[Webhook\] ` + wording.Escape(s.Title)
	}
	return `\[Scheduled\] ` + wording.Escape(s.Title)
}

// answer is the answer of a task; none if that says that there is nothing to tell. Files
// that were made on the way are sent all the same.
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

// finish tells what became of a task that is about to be closed. After a crash it may
// be told again.
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
