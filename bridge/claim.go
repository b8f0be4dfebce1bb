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

// If several processes share a store, a message may reach a process that does not own its chat. That
// process stores the message as an unclaimed job and confirms it. The owner reads the job from the
// store, decides how to handle it as if it had received the message itself, and claims it.
//
// In the same way the owner finds jobs from a process that still believed it owned the chat. It claims
// each job there that does not have its own token.

// claimer claims jobs that other processes have accepted for chats that this process owns.
type claimer struct {
	workers       *workerRegistry
	store         storage.KV
	jobs          queue.Store
	queue         *queue.Queue
	leases        *queue.LeaseHolder
	inserter      *inserter
	intake        *intake
	damageHandler *damageHandler
	maxRetry      time.Duration
	log           *slog.Logger

	// accepting is held, by chat, while messages are written and queued.
	accepting *named.Semaphores
	mu        sync.Mutex
	restart   context.CancelFunc // see rescan
	// claiming holds the chats whose jobs are being claimed; true means that more jobs have come since.
	// claimSlots bounds the chats in which jobs are claimed at a time. See claimChat.
	claiming   map[chats.Chat]bool
	claimSlots chan struct{}
}

// errMaybeLost is returned when another process may have taken over a chat.
var errMaybeLost = errors.New("bridge: cannot verify that this process still owns the chat")

// lockChat locks a chat until release is called, and claims the jobs that other processes have accepted
// there. token is the token of the lease under which this process owns the chat; it is empty if another
// process owns the chat.
func (c *claimer) lockChat(ctx context.Context, chat chats.Chat) (token string, release func(), err error) {
	if release, err = c.accepting.Acquire(ctx, chat.String()); err != nil {
		return "", release, err
	}
	// The owner is determined once, so that a message cannot overtake earlier ones that other processes
	// accept or have accepted.
	if token = c.leases.SafeToken(chat); token != "" && c.leases.Shared() {
		release, err = c.claimEarlier(ctx, chat, release)
	}
	return token, release, err
}

// claimRedelivered handles a message that the platform has delivered again. If this process owns the
// chat, and another process has stored the message meanwhile, it is claimed at once, so that it keeps
// its place among the messages.
func (c *claimer) claimRedelivered(ctx context.Context, j *queue.Run) error {
	if c.queue.Has(j.Key()) {
		return nil
	}
	known, err := c.jobs.Load(ctx, j.Key())
	switch {
	case known == nil || j.Unclaimed:
	case c.leases.Shared() && c.leases.Owns(known.Message.Chat):
		_, err = c.claimEarlier(ctx, known.Origin(), func() {})
	case known.LeaseToken == c.jobs.LeaseToken(known.Message.Chat):
		c.inserter.enqueueStored(known)
	}
	if d, is := errors.AsType[*queue.DamagedError](err); is {
		if _, err := c.damageHandler.deadLetterRecord(ctx, d, chats.Chat{}, ""); err != nil {
			return err
		}
		return c.intake.enqueue(ctx, j)
	}
	return err
}

// claimEarlier claims all jobs that other processes have accepted in a chat of this process, under
// one lease. The caller holds the lock of the chat; after an error, release has been called.
func (c *claimer) claimEarlier(ctx context.Context, chat chats.Chat, release func()) (func(), error) {
	for token := c.jobs.LeaseToken(chat); token != ""; {
		if err := rescue.Do(func() error { return c.claimEarlierOnce(ctx, chat, token) }); err != nil {
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

// claimEarlierOnce is claimEarlier for one lease token.
func (c *claimer) claimEarlierOnce(ctx context.Context, chat chats.Chat, token string) error {
	ctx, cancel := context.WithTimeout(ctx, queue.WriteTimeout)
	defer cancel()
	open, _, err := c.jobs.ListOpen(ctx, chat.WithoutThread().String()+"/", queue.AllChats)
	if err == nil && !c.leases.Owns(chat) {
		err = errMaybeLost
	}
	open = slices.DeleteFunc(open, func(j *queue.Run) bool { return j.Origin() != chat })
	if err == nil {
		open = c.holdUnknown(open)
	}
	// If the chat is lost meanwhile, later jobs must not overtake those that could not be claimed.
	goesOn := func() bool { return err == nil && c.jobs.LeaseToken(chat) == token }
	// First claim the jobs that other processes work on, the last one first, as in ClaimAll.
	for _, j := range slices.Backward(open) {
		if goesOn() && !j.Unclaimed && j.LeaseToken != token {
			var resume func()
			resume, err = c.reclaim(ctx, j)
			defer resume()
		}
	}
	slices.SortFunc(open, queue.Compare)
	for _, j := range open {
		switch {
		case !goesOn():
		case j.Unclaimed:
			err = c.acceptClaimed(ctx, j, token)
		default:
			err = c.inserter.Adopt(ctx, j.Key()) // the write that claimed it may have returned an error
		}
	}
	return err
}

// holdUnknown queues the jobs that a later version of the program wrote, which blocks their chats, and
// returns the other jobs. A process of that version claims the queued jobs once it owns the chat.
func (c *claimer) holdUnknown(open []*queue.Run) []*queue.Run {
	return slices.DeleteFunc(open, func(j *queue.Run) bool {
		if !c.workers.Placement(j).UnknownKind {
			return false
		}
		if !c.queue.Has(j.Key()) {
			c.log.Warn("unknown kind of job: its chat waits for a later version of the program", "job", j.Key())
			c.queue.Enqueue(j)
		}
		return true
	})
}

// acceptClaimed claims a job under a lease, and accepts it like a message that was just received.
func (c *claimer) acceptClaimed(ctx context.Context, j *queue.Run, token string) error {
	j.LeaseToken, j.Unclaimed, j.Found = token, false, false
	if c.workers.forJob(j).policy().fromPlatform && outbox.DeliveryOf(j).Notice == "" {
		return c.intake.accept(ctx, j)
	}
	return c.intake.enqueue(ctx, j) // its kind is already decided
}

// reclaim moves a job from another lease, of this or another process, to the current one. Until resume
// is called, no job begins in its chat.
func (c *claimer) reclaim(ctx context.Context, j *queue.Run) (resume func(), err error) {
	resume = func() {}
	if c.queue.Has(j.Key()) {
		if cut, err := c.queue.Evict(ctx, j.Key()); err != nil {
			return resume, err
		} else if resume = cut; c.queue.Has(j.Key()) {
			return resume, nil // it is about to be closed here; see completer.dropIfLost
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
		c.restart = again
		c.mu.Unlock()
		err := c.followOnce(watching)
		switch {
		case watching.Err() != nil: // look again
		case errors.Is(err, storage.ErrLagged):
			pauses.Reset()
		default:
			c.log.Warn("jobs accepted by other replicas cannot be read, trying again", "err", err)
			_ = retry.Wait(watching, pauses.Next(0))
		}
		again()
	}
}

// rescan makes follow read all jobs again, because this process now owns more chats.
func (c *claimer) rescan() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.restart != nil {
		c.restart()
	}
}

// followOnce claims the open jobs of all owned chats, then follows the changes until an error.
func (c *claimer) followOnce(ctx context.Context) error {
	changes := c.store.Watch(ctx, queue.OpenPrefix)
	open, broken, err := c.jobs.ListOpen(ctx, "", func(chat chats.Chat) bool { return c.jobs.LeaseToken(chat) != "" })
	if err != nil {
		return err
	}
	c.queue.DropUnknown(func(j *queue.Run) bool {
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
			if err := c.damageHandler.deadLetterJob(ctx, d); err != nil {
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

// handleEvent claims a changed job, or drops one of an unknown kind that was closed.
func (c *claimer) handleEvent(ctx context.Context, e storage.Event) {
	m, ok := queue.MessageOf(e.Key, queue.OpenPrefix)
	if !ok || c.jobs.LeaseToken(m.Chat) == "" {
		return
	}
	if e.Deleted {
		if key := e.Key[len(queue.OpenPrefix):]; c.queue.Has(key) {
			c.queue.DropUnknown(func(j *queue.Run) bool { return j.Key() == key })
		}
		return
	}
	if j, err := c.jobs.DecodeJob(e.Entry); err == nil { // else it is found at the takeover of the chat
		c.claimBlockerFirst(ctx, j)
		rescue.Go(c.log, "a job of another replica", func() { c.claimIfFree(j) })
	}
}

// claimBlockerFirst claims a job that blocks other chats before the jobs there are claimed: chats are
// handled concurrently, and a message after a move belongs in the new chat. claimIfFree retries it.
func (c *claimer) claimBlockerFirst(ctx context.Context, j *queue.Run) {
	if _, blocks := c.workers.forJob(j).(blocker); !blocks || c.queue.Has(j.Key()) {
		return
	}
	if err := rescue.Do(func() error { return c.claimOnce(ctx, j.Origin()) }); err != nil {
		c.log.Warn("a job that blocks other chats cannot be claimed first", "job", j.Key(), "err", err)
	}
}

// claimIfFree claims a job that no worker of this process has. If the job has this process's token, its
// first write succeeded although it returned an error.
func (c *claimer) claimIfFree(j *queue.Run) {
	if j.LeaseToken != c.jobs.LeaseToken(j.Message.Chat) || !c.queue.Has(j.Key()) {
		c.claimChat(j.Origin())
	}
}

// claimChat starts a goroutine that claims the jobs of a chat, or makes a running one check once more. A
// failing chat is retried alone, so that other chats do not wait for it.
func (c *claimer) claimChat(chat chats.Chat) {
	c.mu.Lock()
	_, taken := c.claiming[chat]
	c.claiming[chat] = taken
	c.mu.Unlock()
	if take := func() { c.claimUntilDone(c.queue.Context(), chat) }; !taken && !c.queue.TryGo(take) {
		take()
	}
}

// claimUntilDone claims the jobs of a chat until there are no more.
func (c *claimer) claimUntilDone(ctx context.Context, chat chats.Chat) {
	for pauses := retry.New(minRetry, c.maxRetry); ; {
		c.mu.Lock()
		c.claiming[chat] = false
		c.mu.Unlock()
		err := rescue.Do(func() error { return c.claimOnce(ctx, chat) })
		c.mu.Lock()
		if err == nil && !c.claiming[chat] || ctx.Err() != nil {
			delete(c.claiming, chat)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		if err != nil {
			c.log.Warn("jobs accepted by other replicas cannot be claimed, trying again", "chat", chat.String(), "err", err)
			_ = retry.Wait(ctx, pauses.Next(0))
		}
	}
}

// claimAll claims the current jobs of a chat and its threads, and leaves later jobs to follow.
func (c *claimer) claimAll(ctx context.Context, chat chats.Chat) error {
	open, _, err := c.jobs.ListOpen(ctx, chat.String()+"/", queue.AllChats)
	taken := make(map[chats.Chat]bool)
	for _, j := range open {
		if origin := j.Origin(); err == nil && !taken[origin] {
			taken[origin], err = true, c.claimOnce(ctx, origin)
		}
	}
	c.rescan()
	return err
}

func (c *claimer) claimOnce(ctx context.Context, chat chats.Chat) error {
	if err := named.AcquireSlot(ctx, c.claimSlots); err != nil {
		return err
	}
	defer func() { <-c.claimSlots }()
	release, err := c.accepting.Acquire(ctx, chat.String())
	if err == nil {
		release, err = c.claimEarlier(ctx, chat, release)
	}
	if err == nil {
		release()
	}
	return err
}
