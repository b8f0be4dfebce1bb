package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// KindTask is something that nobody has sent: a task whose time has come. Platforms do
// not deliver it; see [Bridge.Submit].
const KindTask Kind = "task"

// StateBarred is the final state of what somebody asked for who may not talk to the bot
// any more.
const StateBarred State = "barred"

// Submission is a task to be answered in a chat.
type Submission struct {
	// Key identifies it in its chat: a second submission under the same key is dropped,
	// for [ReceiptAge] after the first was closed. It has no slashes, colons or spaces.
	Key string
	// Chat is where the answer goes.
	Chat Chat
	// User is the platform's id of whose task it is. What that user may do is judged
	// when the task runs.
	User string
	// Direct is true in a chat with this user alone.
	Direct bool
	// Title stands above the answer.
	Title string
	// Text is what the agent is asked.
	Text string
}

// TaskResult is what became of a [Submission].
type TaskResult struct {
	Key  string
	Chat Chat
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
	// State is how it ended.
	State State
}

// ErrUnwelcome is returned by [Bridge.Submit] for what it will never take: a chat of no
// platform, a bad id.
var ErrUnwelcome = errors.New("bridge: not a task that can be answered")

// ErrBusy is returned by [Bridge.Submit] where too many tasks of the chat wait.
var ErrBusy = errors.New("bridge: too many tasks wait in this chat")

// Submit has a task answered in its chat. When it returns nil, the task is on disk and
// is carried to its end like a message. It has a conversation of its own, which no /clear
// of the chat touches; the tasks of a chat are answered one after another, beside its
// messages. Only the final answer is delivered, under the title.
//
// Submit waits until Run has found what a former run left open.
func (b *Bridge) Submit(ctx context.Context, s Submission) error {
	select {
	case <-b.resumed:
	case <-ctx.Done():
		return fmt.Errorf("submit: %w", context.Cause(ctx))
	}
	m := Message{Chat: s.Chat, ID: s.Key, Kind: KindTask, User: s.User, Direct: s.Direct, Text: s.Text, Time: b.cfg.Now()}
	if err := b.check(m); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwelcome, err)
	}
	j := &Job{Message: m, Title: s.Title, Seq: b.nextSeq(), State: StateOpen, Accepted: b.cfg.Now()}
	l := b.lane(j.lane())
	defer b.leave(l)
	l.accepting.Lock()
	defer l.accepting.Unlock()
	if waiting, _ := l.load(); waiting >= b.cfg.MaxWaiting {
		return fmt.Errorf("submit %s to %s: %w", s.Key, s.Chat, ErrBusy)
	}
	added, err := b.jobs.add(ctx, j)
	if err != nil {
		return fmt.Errorf("submit %s to %s: %w", s.Key, s.Chat, err)
	}
	if !added {
		return b.adopt(ctx, j.Key())
	}
	b.queue(j)
	return nil
}

func (j *Job) isTask() bool { return j.Message.Kind == KindTask }

// lane is where a job waits for its turn. No thread of a platform has a slash.
func (j *Job) lane() Chat {
	chat := j.Message.Chat
	switch {
	case j.isTask():
		chat.Thread += "/task"
	case j.ofCard():
		chat.Thread += "/card"
	}
	return chat
}

// session is the conversation that a job belongs to: that of its chat, or one of its own.
func (b *Bridge) session(ctx context.Context, j *Job) (Session, error) {
	if j.isTask() {
		return Session{Chat: j.Message.Chat, Task: j.Message.ID}, nil
	}
	return CurrentSession(ctx, b.store, j.Message.Chat)
}

func taskLog(chat Chat, task string) string { return chat.String() + "/task/" + task }

// headed puts above an answer what belongs there: the title of a task, or that the
// message waited.
func (j *Job) headed(answer string) string {
	switch {
	case j.Waited > 0:
		return lateNotice(j.Waited) + answer
	case !j.isTask():
		return answer
	}
	return `\[Scheduled\] ` + escapeMarkdown(j.Title) + "\n\n" + answer
}

// escapeMarkdown has a text of one line shown as it is.
func escapeMarkdown(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\\`*_[]<>~|&!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// report tells what became of a task that is about to be closed. After a crash it may
// be told again.
func (b *Bridge) report(ctx context.Context, j *Job) error {
	if !j.isTask() || b.cfg.TaskDone == nil {
		return nil
	}
	r := TaskResult{Key: j.Message.ID, Chat: j.Message.Chat, Owner: j.Message.Owner(), Incident: cmp.Or(j.Incident, j.Aside), Refused: j.Refused, State: j.State}
	if j.State != StateBarred {
		r.Session = taskLog(r.Chat, r.Key)
	}
	if j.State == StateDone {
		for _, p := range j.Parts {
			r.MessageID = cmp.Or(r.MessageID, p.ID)
		}
	}
	if err := b.cfg.TaskDone(ctx, r); err != nil {
		return fmt.Errorf("report task %s: %w", j.Key(), err)
	}
	return nil
}
