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

// takeover takes over the chats that this process comes to own: from a former run of the program, or
// from another process.
type takeover struct {
	workers   *workers
	jobs      queue.Store
	queue     *queue.Queue
	claimer   *claimer
	mender    *mender
	sender    *outbox.Sender
	reactions *outbox.Reactions
	delays    *delays
	cache     interface{ Clear() }
	log       *slog.Logger
}

var _ queue.Chats = (*takeover)(nil)

// Home implements [queue.Chats].
func (t *takeover) Home(chat chats.Chat) chats.Chat { return t.queue.CurrentChat(chat) }

// Lost implements [queue.Chats].
func (t *takeover) Lost(in queue.ChatFilter) {
	t.queue.DropChats(in)
	t.reactions.Drop(in)
}

// Busy implements [queue.Chats].
func (t *takeover) Busy(in queue.ChatFilter) bool { return t.queue.AnyRunning(in) }

// Take implements [queue.Chats]: begin continues the open jobs of others.
func (t *takeover) Take(ctx context.Context, in queue.ChatFilter, token func(chats.Chat) string) (begin func(), err error) {
	t.cache.Clear() // another process may have answered here meanwhile
	as := t.jobs
	as.LeaseToken = token
	open, broken, err := as.Open(ctx, "", in)
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	sweep, err := t.reactions.Load(ctx, in, open)
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	open = t.claimer.hold(open)
	left := make(map[string]bool) // jobs that this process is about to close
	for _, j := range open {
		left[j.Key()] = j.Unclaimed || t.queue.Has(j.Key())
	}
	taken, err := as.ClaimAll(ctx, slices.DeleteFunc(slices.Clone(open), func(j *queue.Run) bool { return left[j.Key()] }))
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	for _, err := range broken {
		if d, is := errors.AsType[*queue.DamagedError](err); is {
			if err := t.mender.mendJob(ctx, d); err != nil {
				return nil, fmt.Errorf("take chats over: %w", err)
			}
		}
	}
	if err := t.workers.stopFound(ctx, taken); err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	// Jobs accepted after one that is left come after it; see takeEarlier.
	behind := make(map[chats.Chat]bool)
	now := make(map[string]bool)
	for _, j := range slices.SortedFunc(slices.Values(open), queue.Order) { // they may have begun
		behind[j.Origin()] = behind[j.Origin()] || left[j.Key()]
		now[j.Key()] = !behind[j.Origin()]
	}
	// A move that is left blocks its chats before this process owns any of them: the chats are taken
	// concurrently, and messages after the move belong into the new chat.
	moves := make(map[*queue.Run]blocker)
	for _, j := range open {
		if w, ok := t.workers.of(j).(blocker); ok && left[j.Key()] && !t.queue.Has(j.Key()) {
			moves[j] = w
			w.block(j)
		}
	}
	return func() {
		t.goOn(slices.DeleteFunc(taken, func(j *queue.Run) bool { return !now[j.Key()] }))
		sweep()
		for j, w := range moves {
			if t.claimer.claimBlockerFirst(t.queue.Context(), j); !t.queue.Has(j.Key()) {
				w.unblock(j) // it was completed, or is retried
			}
		}
		for chat, is := range behind {
			if is {
				t.claimer.claimChat(chat)
			}
		}
		t.claimer.lookAgain()
	}, nil
}

// goOn queues jobs that were taken over.
func (t *takeover) goOn(open []*queue.Run) {
	for _, j := range open {
		if w, ok := t.workers.of(j).(blocker); ok {
			w.block(j)
		}
	}
	for _, j := range open {
		d := outbox.Of(j)
		if late := t.delays.of(j); late > 0 && j.State == receipts.Open && d.Parts == nil && d.Notice == "" {
			d.Delay = late
			t.delays.tell(j.Message.Chat)
		}
		j.Restarted = true
		t.sender.Resume(j)
		t.queue.Enqueue(j)
	}
	if len(open) > 0 {
		t.log.Info("resuming open jobs", "count", len(open))
	}
}
