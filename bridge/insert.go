package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// inserter makes jobs from messages, stores them, and queues them.
type inserter struct {
	platforms map[string]chats.Platform
	workers   *workerRegistry
	leases    *queue.LeaseHolder
	jobs      queue.Store
	queue     *queue.Queue
	sender    *outbox.Sender
	suspender *suspender
	claimer   *claimer
	completer *completer
	redact    func(text string) string
	now       func() time.Time
	log       *slog.Logger
}

var (
	_ access.Jobs   = (*inserter)(nil)
	_ interact.Jobs = (*inserter)(nil)
)

// validateMessage rejects messages from unknown platforms or with invalid ids.
func (i *inserter) validateMessage(m chats.Message) error {
	if i.platforms[m.Chat.Platform] == nil {
		return fmt.Errorf("%w: no platform is named %q", queue.ErrInvalid, m.Chat.Platform)
	}
	for _, id := range []string{m.Chat.ID, m.ID, m.User} {
		if id == "" || strings.ContainsAny(id, "/: \n") {
			return fmt.Errorf("%w: %s message %q of user %q in chat %q: bad id", queue.ErrInvalid, m.Chat.Platform, m.ID, m.User, m.Chat.ID)
		}
	}
	return nil
}

// New returns the job of a message. It is unclaimed unless this process certainly owns the chat.
func (i *inserter) New(m chats.Message) *queue.Run {
	return i.newJob(m, i.leases.SafeToken(m.Chat))
}

// newJob returns the job of a message with a lease token; it is unclaimed if the token is empty.
func (i *inserter) newJob(m chats.Message, token string) *queue.Run {
	if access.ClaimPattern.MatchString(strings.TrimSpace(m.Text)) {
		m = access.AsClaim(m) // a code must not reach the model
	}
	if len(m.Quoted) > 0 {
		m.Quoted = slices.Clone(m.Quoted)
		for n := range m.Quoted {
			if q := &m.Quoted[n]; q.MayBeOwn() { // an answer may contain a secret in place of a [queue.SecretPlaceholder]
				q.Text = i.redact(q.Text)
			}
		}
	}
	j := &queue.Run{Job: queue.Job{Message: m, State: receipts.Open, Accepted: i.now(), LeaseToken: token, Unclaimed: token == "", Unstarted: true}}
	j.Args, j.Work = i.workers.newData(m.Kind)
	return j
}

// add sets the kind of a job and stores it, in one write with more operations. It returns false if the job
// is stored already or one of the operations conflicts.
func (i *inserter) add(ctx context.Context, j *queue.Run, more ...storage.Op) (bool, error) {
	i.workers.setKind(j)
	return i.jobs.Add(ctx, j, more...)
}

// insert stores and queues a job. If a job is stored under its key already, insert queues that one.
func (i *inserter) insert(ctx context.Context, j *queue.Run) error {
	added, err := i.insertWith(ctx, j)
	if err == nil && !added {
		return i.Adopt(ctx, j.Key())
	}
	return err
}

// insertWith is [inserter.add], and queues the job.
func (i *inserter) insertWith(ctx context.Context, j *queue.Run, more ...storage.Op) (bool, error) {
	added, err := i.add(ctx, j, more...)
	if added && !j.Unclaimed {
		j.WaitingSince = i.now()
		if held := i.queue.Enqueue(j); held != nil {
			i.suspender.notifyWaiting(ctx, held, j)
		}
	}
	return added, err
}

// Put implements [access.Jobs].
func (i *inserter) Put(ctx context.Context, m chats.Message) error { return i.insert(ctx, i.New(m)) }

// Tell implements [access.Jobs].
func (i *inserter) Tell(ctx context.Context, m chats.Message, text string) error {
	if err := i.validateMessage(m); err != nil {
		return err
	}
	j := i.New(m)
	outbox.DeliveryOf(j).Notice = text
	return i.insert(ctx, j)
}

// CancelUser implements [access.Jobs].
func (i *inserter) CancelUser(user string) {
	i.completer.endAll(func(j *queue.Run) bool { return j.Message.SenderID() == user }, errRevoked, receipts.Revoked)
}

// Find implements [interact.Jobs].
func (i *inserter) Find(ctx context.Context, key string) (*receipts.Receipt, error) {
	return i.jobs.Find(ctx, key)
}

// InsertWith implements [interact.Jobs].
func (i *inserter) InsertWith(ctx context.Context, j *queue.Run, more ...storage.Op) (storage.Revision, error) {
	added, err := i.jobs.Add(ctx, j, more...)
	if err != nil {
		return storage.Absent, err
	}
	if !added {
		return storage.Absent, storage.ErrConflict
	}
	rev := j.Rev // before a worker writes the job again
	if !j.Unclaimed {
		_ = i.queue.Enqueue(j)
	}
	return rev, nil
}

// Adopt implements [interact.Jobs]: it queues a stored job that no worker has, because its first write
// succeeded although it returned an error.
func (i *inserter) Adopt(ctx context.Context, key string) error {
	if i.queue.Has(key) {
		return nil
	}
	j, err := i.jobs.Load(ctx, key)
	if j != nil && j.LeaseToken == i.jobs.LeaseToken(j.Message.Chat) {
		i.enqueueStored(j)
	}
	return err
}

// Go implements [interact.Jobs]. It does nothing if the queue is closing.
func (i *inserter) Go(f func(ctx context.Context)) {
	i.queue.TryGo(func() { f(i.queue.Context()) })
}

// enqueueStored queues a stored job that no worker of this process has, unless it is unclaimed.
func (i *inserter) enqueueStored(j *queue.Run) {
	if j.Unclaimed {
		return
	}
	i.stopOlder(j)
	i.sender.RestoreOutage(j)
	i.enqueue(j)
}

// enqueue queues a job. Before it queues a job that moves a chat, it blocks the old and the new chat.
func (i *inserter) enqueue(j *queue.Run) *queue.Suspended {
	if b, ok := i.workers.forJob(j).(blocker); ok {
		b.block(j)
	}
	return i.queue.Enqueue(j)
}

// stopOlder stops older jobs if j is a stop command or press that is stored but not yet queued.
func (i *inserter) stopOlder(j *queue.Run) {
	w, ok := i.workers.forJob(j).(stopper)
	if !ok {
		return
	}
	ctx, cancel := i.queue.WriteContext()
	defer cancel()
	if err := w.stopNow(ctx, j); err != nil {
		i.log.Error("older jobs cannot be stopped before the stop command runs", "job", j.Key(), "err", err)
	}
}

// newPreviewEnd returns a job that marks the preview of the job j as ended.
func (i *inserter) newPreviewEnd(j *queue.Run, state receipts.State) *queue.Run {
	p, chat := outbox.DeliveryOf(j).Preview, j.Message.Chat
	chat.ID = p.ChatID
	e := i.New(chats.Message{Chat: chat, ID: queue.Hash(j.Key() + p.Token), Kind: outbox.KindPreview, User: "bot", Time: i.now()})
	part := chats.Part{}
	if shown := i.sender.Render(j, p.Shown); len(shown) > 0 {
		part = shown[0].Part
	}
	if part.Note = previewNotes[state]; part.Note == "" && p.Shown == "" {
		part.Note = "✔ Done." // the preview showed only progress
	}
	d := outbox.DeliveryOf(e)
	d.Preview, d.Parts = p, []receipts.Part{{Part: part, State: receipts.PartPending, ReplacesID: p.ID, RemovesButtons: true}}
	return e
}
