package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
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
// process stores the message as an unclaimed job, with a notice, and confirms it. The owner watches the
// notices of its shares. It reads the job from the store, decides how to handle it as if it had received
// the message itself, and claims it.
//
// In the same way the owner finds jobs from a process that still believed it owned the chat. It claims
// each job there that does not have its own token.

// claimer claims jobs that other processes have accepted for chats that this process owns.
type claimer struct {
	workers       *workerRegistry
	store         storage.Store
	jobs          queue.Store
	queue         *queue.Queue
	leases        *queue.LeaseHolder
	inserter      *inserter
	intake        *intake
	damageHandler *damageHandler
	maxRetry      time.Duration
	now           func() time.Time
	log           *slog.Logger

	// accepting is held, by chat, while messages are written and queued.
	accepting *named.Semaphores
	mu        sync.Mutex
	restart   context.CancelFunc // see rescan
	// claiming holds the chats whose jobs are being claimed; true means that more jobs have come since.
	// claimSlots bounds the chats in which jobs are claimed at a time. See claimChat.
	claiming   map[chats.Chat]bool
	claimSlots chan struct{}
	// handled holds the handled notices by key. hasHandled has a token when some are to be deleted.
	handled    map[string]handledNotice
	hasHandled chan struct{}
	// followed holds the prefixes of open jobs that are followed, and until when; see followJobs.
	// startFollower follows one of them, while follow runs; nil before that.
	followed      map[string]time.Time
	startFollower func(under string)
}

// handledNotice is the version of a notice that was handled.
type handledNotice struct {
	rev      storage.Revision
	deleting bool
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
	closed := false
	if known != nil && !j.Unclaimed {
		closed, err = c.jobs.HasReceipt(ctx, j.Key())
	}
	switch {
	case known == nil || j.Unclaimed || err != nil:
	case closed:
		err = c.jobs.Discard(ctx, known) // an earlier version stored it while it was refused
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
			c.followJobs(j.Origin())
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

// reclaim moves a job from an older lease, or that of another process, to the lease under which this
// process owns the chat. Until resume is called, no job begins in its chat.
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
	var followers sync.WaitGroup
	defer followers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	c.startFollower = func(under string) {
		if ctx.Err() == nil {
			followers.Go(func() { rescue.Go(c.log, "following jobs", func() { c.followUnder(ctx, under) }) })
		}
	}
	for under := range c.followed {
		c.startFollower(under)
	}
	c.mu.Unlock()
	defer func() {
		cancel()
		c.mu.Lock()
		c.startFollower = nil
		c.mu.Unlock()
	}()
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

// rescan makes follow read all jobs again, because this process may own other chats now.
func (c *claimer) rescan() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.restart != nil {
		c.restart()
	}
}

// followOnce claims the open jobs of all owned chats, then the jobs that new notices name, until an
// error.
func (c *claimer) followOnce(ctx context.Context) error {
	prefixes := c.leases.NoticePrefixes()
	if len(prefixes) == 0 {
		<-ctx.Done()
		return nil
	}
	changes := c.store.Watch(ctx, prefixes...)
	if err := c.handleLeftNotices(ctx, prefixes); err != nil {
		return err
	}
	if err := c.claimOpen(ctx, "", func(chat chats.Chat) bool { return c.jobs.LeaseToken(chat) != "" }); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	deleting, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { rescue.Go(c.log, "deleting notices", func() { c.deleteNotices(deleting) }) })
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch notices of jobs: %w", err)
		}
		if err := c.handleNotice(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// claimOpen claims the open jobs of selected chats that no worker of this process has. Only keys with the
// prefix under are read.
func (c *claimer) claimOpen(ctx context.Context, under string, passes queue.ChatFilter) error {
	open, broken, err := c.jobs.ListOpen(ctx, under, passes)
	if err != nil {
		return err
	}
	c.queue.DropUnknown(func(j *queue.Run) bool {
		return strings.HasPrefix(j.Key(), under) && !slices.ContainsFunc(open, func(o *queue.Run) bool { return o.Key() == j.Key() })
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
	return nil
}

// handleNotice claims the job of a notice, or passes the notice on if the chat has moved to another share.
func (c *claimer) handleNotice(ctx context.Context, e storage.Event) error {
	key, origin, ok := queue.ParseNotice(e.Entry)
	if !ok || e.Deleted && c.hasDeleted(e.Key) {
		return nil
	}
	if c.jobs.LeaseToken(origin) == "" {
		return c.handleForeignNotice(ctx, e, key, origin)
	}
	j := &queue.Run{}
	if e.Deleted { // the former owner has read it, but may not have claimed the job
		found, err := c.jobs.Load(ctx, key)
		if found == nil {
			return ignoreDamaged(err) // it is found at the takeover of the chat
		}
		j = found
	} else {
		m, _ := queue.MessageOf(key, "")
		m.Chat = origin
		j.Message = m
		c.noticeHandled(e.Entry)
	}
	c.claimBlockerFirst(ctx, j)
	rescue.Go(c.log, "a job of another replica", func() { c.claimIfFree(j) })
	return nil
}

// handleForeignNotice handles a notice of a job in a chat that another process owns.
func (c *claimer) handleForeignNotice(ctx context.Context, e storage.Event, key string, origin chats.Chat) error {
	if !hasAnyPrefix(e.Key, c.leases.NoticePrefixes()) {
		c.rescan() // the share was lost: do not watch it any more
		return nil
	}
	// If the notice was passed on already, this process does not know of the move yet. It reads all jobs
	// when it learns of the move.
	moved, ok := c.leases.PassOn(e.Entry, key, origin)
	if !ok || e.Deleted {
		return nil
	}
	if _, err := c.store.Put(ctx, moved.Key, moved.Value, moved.Rev); err != nil {
		return fmt.Errorf("pass a notice on: %w", err)
	}
	c.noticeHandled(e.Entry)
	return nil
}

func hasAnyPrefix(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func ignoreDamaged(err error) error {
	if queue.IsDamaged(err) {
		return nil
	}
	return err
}

// handleLeftNotices deletes notices that a former owner has left. Their jobs are among the open ones.
func (c *claimer) handleLeftNotices(ctx context.Context, prefixes []string) error {
	c.mu.Lock()
	clear(c.handled)
	c.mu.Unlock()
	for entry, err := range c.store.List(ctx, storage.Range{Prefix: queue.NoticePrefix}) {
		if err != nil {
			return fmt.Errorf("list notices of jobs: %w", err)
		}
		if hasAnyPrefix(entry.Key, prefixes) {
			c.noticeHandled(entry)
		}
	}
	return nil
}

// noticeHandled marks a notice for deletion by deleteNotices.
func (c *claimer) noticeHandled(notice storage.Entry) {
	c.mu.Lock()
	c.handled[notice.Key] = handledNotice{rev: notice.Revision}
	c.mu.Unlock()
	select {
	case c.hasHandled <- struct{}{}:
	default:
	}
}

// hasDeleted reports whether this process has deleted a notice, and forgets the notice.
func (c *claimer) hasDeleted(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	deleted := c.handled[key].deleting
	delete(c.handled, key)
	return deleted
}

const (
	// noticePause is how long handled notices wait to be deleted together, at most noticesAtOnce in a write.
	noticePause   = time.Second
	noticesAtOnce = 100
)

// deleteNotices deletes handled notices until ctx ends. A newer version of a notice stays: its job has
// changed since it was read.
func (c *claimer) deleteNotices(ctx context.Context) {
	for {
		select {
		case <-c.hasHandled:
		case <-ctx.Done():
			return
		}
		if retry.Wait(ctx, noticePause) != nil {
			return
		}
		var ops []storage.Op
		c.mu.Lock()
		for key, notice := range c.handled {
			if !notice.deleting {
				c.handled[key] = handledNotice{notice.rev, true}
				ops = append(ops, storage.Delete(key, notice.rev))
			}
		}
		c.mu.Unlock()
		for some := range slices.Chunk(ops, noticesAtOnce) {
			_, err := c.store.Write(ctx, some...)
			if errors.Is(err, storage.ErrConflict) {
				err = nil
				for _, op := range some {
					if alone := c.store.Delete(ctx, op.Key, op.Rev); !errors.Is(alone, storage.ErrConflict) {
						err = cmp.Or(err, alone)
					}
				}
			}
			if err != nil && ctx.Err() == nil {
				c.log.Warn("handled notices of jobs cannot be deleted now", "count", len(some), "err", err)
			}
		}
	}
}

const (
	// followTime is how long jobs are followed whose notices may be missing. A write may still reach the
	// database minutes after its connection was lost.
	followTime = time.Hour
	// maxFollowed bounds the chats that are followed at a time. Beyond it, all jobs are followed.
	maxFollowed = 1000
)

// followJobs claims all jobs of a chat and its threads that appear within followTime, with or without a
// notice. It is called after a write with an unknown outcome, after a move of the chat, because other
// processes may learn of the move later, and for a job of an unknown kind, which only a later program
// closes.
func (c *claimer) followJobs(chat chats.Chat) {
	if !c.leases.Shared() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	under := chat.WithoutThread().String() + "/"
	if _, is := c.followed[under]; !is && len(c.followed) >= maxFollowed {
		under = ""
	}
	_, is := c.followed[under]
	if c.followed[under] = c.now().Add(followTime); !is && c.startFollower != nil {
		c.startFollower(under)
	}
}

// followKey is followJobs for the job of a key that a write may have stored.
func (c *claimer) followKey(key string) {
	if m, ok := queue.MessageOf(key, queue.OpenPrefix); ok {
		c.followJobs(m.Chat)
	}
}

func (c *claimer) followUnder(ctx context.Context, under string) {
	for pauses := retry.New(minRetry, c.maxRetry); ctx.Err() == nil; {
		c.mu.Lock()
		until := c.followed[under]
		if c.now().After(until) && !c.queue.HasUnknown(under) {
			delete(c.followed, under)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		following, cancel := context.WithTimeout(ctx, max(until.Sub(c.now()), followTime/10))
		err := rescue.Do(func() error { return c.followUnderOnce(following, under) })
		timedOut := following.Err() != nil
		cancel()
		if err != nil && !timedOut && !errors.Is(err, storage.ErrLagged) {
			c.log.Warn("jobs that may be stored cannot be followed, trying again", "under", under, "err", err)
			_ = retry.Wait(ctx, pauses.Next(0))
		}
	}
}

func (c *claimer) followUnderOnce(ctx context.Context, under string) error {
	changes := c.store.Watch(ctx, queue.OpenPrefix+under)
	if err := c.claimOpen(ctx, under, func(chat chats.Chat) bool { return c.jobs.LeaseToken(chat) != "" }); err != nil {
		return err
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

// claimAll claims the current jobs of a chat and its threads, and leaves later jobs to [claimer.follow].
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
