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

// Where several processes share a store, a message may come to one that does not answer in
// its chat. That one writes it as an unclaimed job and confirms it. The process that answers there learns of
// it from the store, decides what becomes of it as if it had come to itself, and takes it.
//
// The same way a process finds what another one wrote that believed to answer in the chat
// still: each job there that does not have its own token is taken.

// claimer takes what other processes have accepted in the chats of this one.
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
	// taking are the chats in which something of other processes is taken, and whether there
	// is more; takes bounds how many at a time. See see.
	taking map[chats.Chat]bool
	takes  chan struct{}
}

// errAsleep says that another process may have taken a chat over.
var errAsleep = errors.New("bridge: this process has not proved for too long that it answers in this chat")

// enter has a chat to the caller until release, behind what other processes have accepted there. The token is
// that of the lease under which this process answers in it, empty where another one does.
func (c *claimer) enter(ctx context.Context, chat chats.Chat) (token string, release func(), err error) {
	if release, err = c.accepting.Acquire(ctx, chat.String()); err != nil {
		return "", release, err
	}
	// Who answers is asked once: a message must not overtake what was left to
	// others, or what they have accepted, before it.
	if token = c.leases.SafeToken(chat); token != "" && c.leases.Shared() {
		release, err = c.takeEarlier(ctx, chat, release)
	}
	return token, release, err
}

// known looks after a message that the platform has given again. Where this process answers,
// one that another has written meanwhile is taken at once, before what comes next in its chat
// and behind what was written before it.
func (c *claimer) known(ctx context.Context, j *queue.Run) error {
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

// takeEarlier takes what other processes have accepted in a chat before, if this one answers
// there, all of it under one lease. The caller has the chat to itself; after an error it does not
// any more.
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

// takeOthers is takeEarlier while the lease with a token is held.
func (c *claimer) takeOthers(ctx context.Context, chat chats.Chat, token string) error {
	ctx, cancel := context.WithTimeout(ctx, queue.WriteTimeout)
	defer cancel()
	open, _, err := c.jobs.Open(ctx, chat.Whole().String()+"/", queue.AllChats)
	if err == nil && !c.leases.Owns(chat) {
		err = errAsleep
	}
	open = slices.DeleteFunc(open, func(j *queue.Run) bool { return j.Origin() != chat })
	if err == nil {
		open = c.hold(open)
	}
	// Where the chat is lost meanwhile, what comes next must not go before what could not be taken.
	goesOn := func() bool { return err == nil && c.jobs.LeaseToken(chat) == token }
	// First all are taken that others work on, the last first as in TakeAll.
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

// hold has the jobs among some that a later program wrote hold up what is behind them in their
// chats, and returns the others. Such a program takes them when it answers there.
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
	return c.intake.enqueue(ctx, j) // what it becomes is decided
}

// retake makes a job this lease's that belongs to another one, here or elsewhere. Until
// resume is called nothing begins in its chat.
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

// follow takes what other processes write for this one, until ctx ends.
func (c *claimer) follow(ctx context.Context) {
	for pauses := retry.New(minRetry, c.maxRetry); ctx.Err() == nil; {
		watching, again := context.WithCancel(ctx)
		c.mu.Lock()
		c.again = again
		c.mu.Unlock()
		err := c.followOnce(watching)
		switch {
		case watching.Err() != nil: // it looks again
		case errors.Is(err, storage.ErrLagged):
			pauses.Reset()
		default:
			c.log.Warn("what other replicas have accepted cannot be read, trying again", "err", err)
			_ = retry.Wait(watching, pauses.Next(0))
		}
		again()
	}
}

// lookAgain has follow look at all there is, because chats are this process's now.
func (c *claimer) lookAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.again != nil {
		c.again()
	}
}

// followOnce looks at all there is, then at changes.
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
		c.lookFirst(ctx, j)
	}
	for _, j := range open {
		rescue.Go(c.log, "a job of another replica", func() { c.look(j) })
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
		c.notice(ctx, e)
	}
	return nil
}

// notice looks at a job that was written.
func (c *claimer) notice(ctx context.Context, e storage.Event) {
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
	if j, err := c.jobs.Read(e.Entry); err == nil { // else it is found when the chat is taken over
		c.lookFirst(ctx, j)
		rescue.Go(c.log, "a job of another replica", func() { c.look(j) })
	}
}

// lookFirst takes a job that holds up other chats before what came later is looked at there: chats
// are taken side by side, and a message behind a move belongs into the new chat. Where it fails,
// look tries again.
func (c *claimer) lookFirst(ctx context.Context, j *queue.Run) {
	if _, blocks := c.workers.of(j).(blocker); !blocks || c.queue.Has(j.Key()) {
		return
	}
	if err := rescue.Do(func() error { return c.takeOnce(ctx, j.Origin()) }); err != nil {
		c.log.Warn("a job that holds up other chats cannot be taken first", "job", j.Key(), "err", err)
	}
}

// look has a job taken on which no worker is here. One with the token of this process is on
// disk although its first write has reported an error.
func (c *claimer) look(j *queue.Run) {
	if j.LeaseToken != c.jobs.LeaseToken(j.Message.Chat) || !c.queue.Has(j.Key()) {
		c.see(j.Origin())
	}
}

// see has a goroutine take what there is for a chat, once more where one does. A chat in
// trouble is tried again by itself: the others do not wait for it.
func (c *claimer) see(chat chats.Chat) {
	c.mu.Lock()
	_, taken := c.taking[chat]
	c.taking[chat] = taken
	c.mu.Unlock()
	if take := func() { c.takeIn(c.queue.Context(), chat) }; !taken && !c.queue.TryGo(take) {
		take()
	}
}

// takeIn takes what there is for a chat, until there is no more.
func (c *claimer) takeIn(ctx context.Context, chat chats.Chat) {
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

// takeAll takes what there is for a chat and its threads now, and has others look for the rest.
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
