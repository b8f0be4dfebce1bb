package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/internal/named"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// If several processes share a store, a message may reach one that does not own its chat. That process
// stores it as an unclaimed job and confirms it. The owner learns of it from the store, decides how to
// handle it as if it had received it, and claims it.
//
// In the same way a process finds what another one wrote that still believed to own the chat: it claims
// each job there that does not have its own token.

// claimer claims jobs that other processes have accepted in the chats of this one.
type claimer struct {
	workers  *workers
	store    storage.KV
	jobs     queue.Store
	queue    *queue.Queue
	leases   *queue.Leases
	inserter *inserter
	intake   *intake
	mender   *mender
	maxRetry time.Duration
	log      *slog.Logger

	// accepting is held, by chat, while messages are written and queued.
	accepting *named.Semaphores
	mu        sync.Mutex
	again     context.CancelFunc // see lookAgain
	// taking holds the chats whose jobs of other processes are being claimed; true means that there are
	// more. takes bounds how many at a time. See claimChat.
	taking map[chats.Chat]bool
	takes  chan struct{}
}

// errAsleep says that another process may have taken over a chat.
var errAsleep = errors.New("bridge: this process has not proved for too long that it answers in this chat")

// enter gives the caller a chat exclusively until release, after claiming what other processes have
// accepted there. token is that of the lease under which this process owns the chat; empty if another
// one does.
func (c *claimer) enter(ctx context.Context, chat chats.Chat) (token string, release func(), err error) {
	if release, err = c.accepting.Acquire(ctx, chat.String()); err != nil {
		return "", release, err
	}
	// The owner is determined once: a message must not overtake earlier ones that were left to others
	// or accepted by others.
	if token = c.leases.SafeToken(chat); token != "" && c.leases.Shared() {
		release, err = c.takeEarlier(ctx, chat, release)
	}
	return token, release, err
}

// claimRedelivered handles a message that the platform has delivered again. If this process owns the chat, and
// another has stored the message meanwhile, it is claimed at once: after earlier messages and before
// later ones.
func (c *claimer) claimRedelivered(ctx context.Context, j *queue.Run) error {
	if c.queue.Has(j.Key()) {
		return nil
	}
	known, err := c.jobs.Load(ctx, j.Key())
	switch {
	case known == nil || j.Unclaimed:
	case c.leases.Shared() && c.leases.Owns(known.Message.Chat):
		_, err = c.takeEarlier(ctx, known.Origin(), func() {})
	case known.LeaseToken == c.jobs.LeaseToken(known.Message.Chat):
		c.inserter.begin(known)
	}
	if d, is := errors.AsType[*queue.DamagedError](err); is {
		if _, err := c.mender.mend(ctx, d, chats.Chat{}, ""); err != nil {
			return err
		}
		return c.intake.enqueue(ctx, j)
	}
	return err
}

// takeEarlier claims what other processes have accepted before in a chat that this one owns, all of it
// under one lease. The caller has the chat exclusively; after an error it does not any more.
func (c *claimer) takeEarlier(ctx context.Context, chat chats.Chat, release func()) (func(), error) {
	for token := c.jobs.LeaseToken(chat); token != ""; {
		if err := rescue.Do(func() error { return c.takeOthers(ctx, chat, token) }); err != nil {
			release()
			return release, err
		}
		under := token
		if token = c.jobs.LeaseToken(chat); token == under {
			break
		}
	}
	return release, nil
}

// takeOthers is takeEarlier for one lease token.
func (c *claimer) takeOthers(ctx context.Context, chat chats.Chat, token string) error {
	ctx, cancel := context.WithTimeout(ctx, queue.WriteTimeout)
	defer cancel()
	open, _, err := c.jobs.Open(ctx, chat.WithoutThread().String()+"/", queue.AllChats)
	if err == nil && !c.leases.Owns(chat) {
		err = errAsleep
	}
	open = slices.DeleteFunc(open, func(j *queue.Run) bool { return j.Origin() != chat })
	if err == nil {
		open = c.hold(open)
	}
	// If the chat is lost meanwhile, later jobs must not overtake those that could not be claimed.
	goesOn := func() bool { return err == nil && c.jobs.LeaseToken(chat) == token }
	// First claim the jobs that others work on, the last first as in ClaimAll.
	for _, j := range slices.Backward(open) {
		if goesOn() && !j.Unclaimed && j.LeaseToken != token {
			var resume func()
			resume, err = c.retake(ctx, j)
			defer resume()
		}
	}
	slices.SortFunc(open, queue.Order)
	for _, j := range open {
		switch {
		case !goesOn():
		case j.Unclaimed:
			err = c.receive(ctx, j, token)
		default:
			err = c.inserter.Adopt(ctx, j.Key()) // the write that took it may have reported an error
		}
	}
	return err
}

// hold blocks the chats of those jobs that a later version of the program wrote, and returns the other
// jobs. A process of that version claims them once it owns the chat.
func (c *claimer) hold(open []*queue.Run) []*queue.Run {
	return slices.DeleteFunc(open, func(j *queue.Run) bool {
		if !c.workers.Placement(j).Unknown {
			return false
		}
		if !c.queue.Has(j.Key()) {
			c.log.Warn("this program does not know the kind of a job: its chat waits for a later one", "job", j.Key())
			c.queue.Enqueue(j)
		}
		return true
	})
}

// receive claims a job under a lease.
func (c *claimer) receive(ctx context.Context, j *queue.Run, token string) error {
	j.LeaseToken, j.Unclaimed, j.Found = token, false, false
	if c.workers.of(j).declares().delivered && outbox.Of(j).Notice == "" {
		return c.intake.take(ctx, j)
	}
	return c.intake.enqueue(ctx, j) // how to handle it is decided
}

// retake moves a job from another lease, of this process or another, to the present one. Until resume
// is called nothing begins in its chat.
func (c *claimer) retake(ctx context.Context, j *queue.Run) (resume func(), err error) {
	resume = func() {}
	if c.queue.Has(j.Key()) {
		if cut, err := c.queue.Evict(ctx, j.Key()); err != nil {
			return resume, err
		} else if resume = cut; c.queue.Has(j.Key()) {
			return resume, nil // it is about to be closed here; see completer.lost
		}
	}
	_, err = c.jobs.Claim(ctx, j)
	return resume, err
}

// follow claims jobs that other processes write for this one, until ctx ends.
func (c *claimer) follow(ctx context.Context) {
	for pauses := retry.New(minRetry, c.maxRetry); ctx.Err() == nil; {
		watching, again := context.WithCancel(ctx)
		c.mu.Lock()
		c.again = again
		c.mu.Unlock()
		err := c.followOnce(watching)
		switch {
		case watching.Err() != nil: // look again
		case errors.Is(err, storage.ErrLagged):
			pauses.Reset()
		default:
			c.log.Warn("what other replicas have accepted cannot be read, trying again", "err", err)
			_ = retry.Wait(watching, pauses.Next(0))
		}
		again()
	}
}

// lookAgain makes follow look at all jobs, because this process owns more chats.
func (c *claimer) lookAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.again != nil {
		c.again()
	}
}

// followOnce looks at all jobs, then at changes.
func (c *claimer) followOnce(ctx context.Context) error {
	changes := c.store.Watch(ctx, queue.OpenPrefix)
	open, broken, err := c.jobs.Open(ctx, "", func(chat chats.Chat) bool { return c.jobs.LeaseToken(chat) != "" })
	if err != nil {
		return err
	}
	c.queue.ReleaseUnknown(func(j *queue.Run) bool {
		return !slices.ContainsFunc(open, func(o *queue.Run) bool { return o.Key() == j.Key() })
	})
	for _, j := range open {
		c.claimBlockerFirst(ctx, j)
	}
	for _, j := range open {
		rescue.Go(c.log, "a job of another replica", func() { c.claimIfFree(j) })
	}
	for _, err := range broken {
		if d, is := errors.AsType[*queue.DamagedError](err); is {
			if err := c.mender.mendJob(ctx, d); err != nil {
				return err
			}
		}
	}
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch open jobs: %w", err)
		}
		c.handleEvent(ctx, e)
	}
	return nil
}

// handleEvent handles a change of a job.
func (c *claimer) handleEvent(ctx context.Context, e storage.Event) {
	m, ok := queue.MessageOf(e.Key, queue.OpenPrefix)
	if !ok || c.jobs.LeaseToken(m.Chat) == "" {
		return
	}
	if e.Deleted {
		if key := e.Key[len(queue.OpenPrefix):]; c.queue.Has(key) {
			c.queue.ReleaseUnknown(func(j *queue.Run) bool { return j.Key() == key })
		}
		return
	}
	if j, err := c.jobs.Read(e.Entry); err == nil { // else it is found at the takeover of the chat
		c.claimBlockerFirst(ctx, j)
		rescue.Go(c.log, "a job of another replica", func() { c.claimIfFree(j) })
	}
}

// claimBlockerFirst claims a job that blocks other chats before it looks at later jobs there: chats are handled
// concurrently, and a message after a move belongs into the new chat. If it fails, look tries again.
func (c *claimer) claimBlockerFirst(ctx context.Context, j *queue.Run) {
	if _, blocks := c.workers.of(j).(blocker); !blocks || c.queue.Has(j.Key()) {
		return
	}
	if err := rescue.Do(func() error { return c.takeOnce(ctx, j.Origin()) }); err != nil {
		c.log.Warn("a job that holds up other chats cannot be taken first", "job", j.Key(), "err", err)
	}
}

// claimIfFree claims a job that no worker here has. One with this process's token was written although its
// first write returned an error.
func (c *claimer) claimIfFree(j *queue.Run) {
	if j.LeaseToken != c.jobs.LeaseToken(j.Message.Chat) || !c.queue.Has(j.Key()) {
		c.claimChat(j.Origin())
	}
}

// claimChat starts a goroutine that claims the jobs of a chat, or makes a running one look once more. A
// failing chat is retried by itself, so that the others do not wait for it.
func (c *claimer) claimChat(chat chats.Chat) {
	c.mu.Lock()
	_, taken := c.taking[chat]
	c.taking[chat] = taken
	c.mu.Unlock()
	if take := func() { c.claimUntilDone(c.queue.Context(), chat) }; !taken && !c.queue.TryGo(take) {
		take()
	}
}

// claimUntilDone claims the jobs of a chat until there are no more.
func (c *claimer) claimUntilDone(ctx context.Context, chat chats.Chat) {
	for pauses := retry.New(minRetry, c.maxRetry); ; {
		c.mu.Lock()
		c.taking[chat] = false
		c.mu.Unlock()
		err := rescue.Do(func() error { return c.takeOnce(ctx, chat) })
		c.mu.Lock()
		if err == nil && !c.taking[chat] || ctx.Err() != nil {
			delete(c.taking, chat)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		if err != nil {
			c.log.Warn("what was accepted elsewhere cannot be taken, trying again", "chat", chat.String(), "err", err)
			_ = retry.Wait(ctx, pauses.Next(0))
		}
	}
}

// takeAll claims the present jobs of a chat and its threads, and leaves later ones to follow.
func (c *claimer) takeAll(ctx context.Context, chat chats.Chat) error {
	open, _, err := c.jobs.Open(ctx, chat.String()+"/", queue.AllChats)
	taken := make(map[chats.Chat]bool)
	for _, j := range open {
		if origin := j.Origin(); err == nil && !taken[origin] {
			taken[origin], err = true, c.takeOnce(ctx, origin)
		}
	}
	c.lookAgain()
	return err
}

func (c *claimer) takeOnce(ctx context.Context, chat chats.Chat) error {
	if err := named.Take(ctx, c.takes); err != nil {
		return err
	}
	defer func() { <-c.takes }()
	release, err := c.accepting.Acquire(ctx, chat.String())
	if err == nil {
		release, err = c.takeEarlier(ctx, chat, release)
	}
	if err == nil {
		release()
	}
	return err
}
