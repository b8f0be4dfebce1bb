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
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
)

// inserter makes the jobs of messages, stores and queues them.
type inserter struct {
	platforms map[string]chats.Platform
	workers   *workers
	leases    *queue.Leases
	jobs      queue.Store
	queue     *queue.Queue
	sender    *outbox.Sender
	tracer    queue.Tracer // nil for none
	redact    func(text string) string
	now       func() time.Time
	log       *slog.Logger
}

var (
	_ access.Jobs   = (*inserter)(nil)
	_ interact.Jobs = (*inserter)(nil)
	_ privacy.Jobs  = (*inserter)(nil)
)

// check rejects messages that no platform should deliver.
func (i *inserter) check(m chats.Message) error {
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

// New returns the job of a message: this process's, or an unclaimed one if another owns the chat.
func (i *inserter) New(m chats.Message) *queue.Run {
	return i.withToken(m, i.leases.SafeToken(m.Chat))
}

// withToken returns the job of a message under a lease, unclaimed if token is empty.
func (i *inserter) withToken(m chats.Message, token string) *queue.Run {
	if access.ClaimPattern.MatchString(strings.TrimSpace(m.Text)) {
		m = access.AsClaim(m) // a code must not reach the model
	}
	if len(m.Quoted) > 0 {
		m.Quoted = slices.Clone(m.Quoted)
		for n := range m.Quoted {
			if q := &m.Quoted[n]; q.Own { // it may be an answer with a [queue.SecretPlaceholder]
				q.Text = i.redact(q.Text)
			}
		}
	}
	j := &queue.Run{Job: queue.Job{Message: m, State: receipts.Open, Accepted: i.now(), LeaseToken: token, Unclaimed: token == "", Unstarted: true}}
	j.Args, j.Work = i.workers.types(m.Kind)
	if i.tracer != nil {
		i.tracer.Begin(j)
	}
	return j
}

// add stores a job, whose kind no longer changes, unless it is known.
func (i *inserter) add(ctx context.Context, j *queue.Run) (bool, error) {
	i.workers.decide(j)
	return i.jobs.Add(ctx, j)
}

// insert stores and queues a job that no other part inserts, or the known one under its key.
func (i *inserter) insert(ctx context.Context, j *queue.Run) error {
	added, err := i.add(ctx, j)
	if err == nil && !added {
		return i.Adopt(ctx, j.Key())
	}
	if added && !j.Unclaimed {
		j.Since = i.now()
		i.queue.Enqueue(j)
	}
	return err
}

// Put implements [access.Jobs] and [privacy.Jobs].
func (i *inserter) Put(ctx context.Context, m chats.Message) error { return i.insert(ctx, i.New(m)) }

// Tell implements [access.Jobs].
func (i *inserter) Tell(ctx context.Context, m chats.Message, text string) error {
	if err := i.check(m); err != nil {
		return err
	}
	j := i.New(m)
	outbox.Of(j).Notice = text
	return i.insert(ctx, j)
}

// CancelUser implements [access.Jobs].
func (i *inserter) CancelUser(user string) { i.queue.InterruptUser(user, errRevoked) }

// Find implements [interact.Jobs].
func (i *inserter) Find(ctx context.Context, key string) (*receipts.Receipt, error) {
	return i.jobs.Find(ctx, key)
}

// Enqueue implements [interact.Jobs].
func (i *inserter) Enqueue(j *queue.Run) {
	if i.jobs.AssignSeq(j); !j.Unclaimed {
		_ = i.queue.Enqueue(j)
	}
}

// Adopt queues a stored job that no worker has: its first write returned an error and had succeeded all
// the same.
func (i *inserter) Adopt(ctx context.Context, key string) error {
	if i.queue.Has(key) {
		return nil
	}
	j, err := i.jobs.Load(ctx, key)
	if j != nil && j.LeaseToken == i.jobs.LeaseToken(j.Message.Chat) {
		i.begin(j)
	}
	return err
}

// Go implements [interact.Jobs]. It does nothing if the queue is closing: no caller would wait for it.
func (i *inserter) Go(f func(ctx context.Context)) {
	i.queue.TryGo(func() { f(i.queue.Context()) })
}

// begin queues a job of this process that no worker has, unless another process now owns the chat.
func (i *inserter) begin(j *queue.Run) {
	if j.Unclaimed {
		return
	}
	i.stopOlder(j)
	i.sender.Resume(j)
	i.enqueue(j)
}

// enqueue queues a job. A job that moves a chat first blocks the chats at both ends.
func (i *inserter) enqueue(j *queue.Run) *queue.Suspended {
	if b, ok := i.workers.of(j).(blocker); ok {
		b.block(j)
	}
	return i.queue.Enqueue(j)
}

// stopOlder applies a stored /stop that is not queued yet.
func (i *inserter) stopOlder(j *queue.Run) {
	w, ok := i.workers.of(j).(stopper)
	if !ok {
		return
	}
	ctx, cancel := i.queue.WriteContext()
	defer cancel()
	if err := w.now(ctx, j); err != nil {
		i.log.Error("a /stop has no effect before its turn", "job", j.Key(), "err", err)
	}
}

// endOfPreview returns a job that marks the preview of another one as ended.
func (i *inserter) endOfPreview(j *queue.Run, state receipts.State) *queue.Run {
	p, chat := outbox.Of(j).Preview, j.Message.Chat
	chat.ID = p.ChatID
	e := i.New(chats.Message{Chat: chat, ID: queue.Hash(j.Key() + p.Token), Kind: outbox.KindPreview, User: "bot", Time: i.now()})
	part := chats.Part{}
	if shown := i.sender.Render(j, p.Shown); len(shown) > 0 {
		part = shown[0].Part
	}
	if part.Note = notes[state]; part.Note == "" && p.Shown == "" {
		part.Note = "✔ Done." // it showed only progress
	}
	d := outbox.Of(e)
	d.Preview, d.Parts = p, []receipts.Part{{Part: part, State: receipts.PartPending, Edit: p.ID, Last: true}}
	return e
}
