package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
)

// takeover takes over the chats that this process comes to own, from an earlier run of the program or
// from another process.
type takeover struct {
	workers       *workerRegistry
	jobs          queue.Store
	queue         *queue.Queue
	claimer       *claimer
	damageHandler *damageHandler
	sender        *outbox.Sender
	reactions     *outbox.ReactionTracker
	delayTracker  *delayTracker
	cache         interface{ Clear() }
	log           *slog.Logger
}

var _ queue.TakeoverHandler = (*takeover)(nil)

// CurrentChat implements [queue.TakeoverHandler].
func (t *takeover) CurrentChat(chat chats.Chat) chats.Chat { return t.queue.CurrentChat(chat) }

// OnLost implements [queue.TakeoverHandler].
func (t *takeover) OnLost(in queue.ChatFilter) {
	t.queue.DropChats(in)
	t.reactions.DropChats(in)
}

// IsBusy implements [queue.TakeoverHandler].
func (t *takeover) IsBusy(in queue.ChatFilter) bool { return t.queue.AnyRunning(in) }

// TakeOver implements [queue.TakeoverHandler]. begin continues the open jobs that were taken over.
func (t *takeover) TakeOver(ctx context.Context, in queue.ChatFilter, token func(chats.Chat) string) (begin func(), err error) {
	t.cache.Clear() // another process may have answered here meanwhile
	as := t.jobs
	as.LeaseToken = token
	open, broken, err := as.ListOpen(ctx, "", in)
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	sweep, err := t.reactions.Load(ctx, in, open)
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	open = t.claimer.holdUnknown(open)
	left := make(map[string]bool) // jobs to claim later: unclaimed ones, and those that this process still has
	for _, j := range open {
		left[j.Key()] = j.Unclaimed || t.queue.Has(j.Key())
	}
	taken, err := as.ClaimAll(ctx, slices.DeleteFunc(slices.Clone(open), func(j *queue.Run) bool { return left[j.Key()] }))
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	for _, err := range broken {
		if d, is := errors.AsType[*queue.DamagedError](err); is {
			if err := t.damageHandler.deadLetterJob(ctx, d); err != nil {
				return nil, fmt.Errorf("take chats over: %w", err)
			}
		}
	}
	if err := t.workers.stopFound(ctx, taken); err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	// Jobs that were accepted after a job that is left must not run before it; see claimEarlier.
	behind := make(map[chats.Chat]bool)
	now := make(map[string]bool)
	for _, j := range slices.SortedFunc(slices.Values(open), queue.Compare) { // jobs that have begun come first
		behind[j.Origin()] = behind[j.Origin()] || left[j.Key()]
		now[j.Key()] = !behind[j.Origin()]
	}
	// A move that is left blocks its chats before this process owns any of them, because the chats are
	// claimed concurrently, and messages after the move belong in the new chat.
	moves := make(map[*queue.Run]blocker)
	for _, j := range open {
		if w, ok := t.workers.forJob(j).(blocker); ok && left[j.Key()] && !t.queue.Has(j.Key()) {
			moves[j] = w
			w.block(j)
		}
	}
	return func() {
		t.resumeJobs(slices.DeleteFunc(taken, func(j *queue.Run) bool { return !now[j.Key()] }))
		sweep()
		for j, w := range moves {
			if t.claimer.claimBlockerFirst(t.queue.Context(), j); !t.queue.Has(j.Key()) {
				w.unblock(j) // the move was completed, or will be retried
			}
		}
		for chat, is := range behind {
			if is {
				t.claimer.claimChat(chat)
			}
		}
		t.claimer.rescan()
	}, nil
}

// resumeJobs queues jobs that were taken over.
func (t *takeover) resumeJobs(open []*queue.Run) {
	for _, j := range open {
		if w, ok := t.workers.forJob(j).(blocker); ok {
			w.block(j)
		}
	}
	for _, j := range open {
		d := outbox.DeliveryOf(j)
		if late := t.delayTracker.delayToReport(j); late > 0 && j.State == receipts.Open && d.Parts == nil && d.Notice == "" {
			d.Delay = late
			t.delayTracker.recordNotice(j.Message.Chat)
		}
		j.Restarted = true
		t.sender.RestoreOutage(j)
		t.queue.Enqueue(j)
	}
	if len(open) > 0 {
		t.log.Info("resuming open jobs", "count", len(open))
	}
}
