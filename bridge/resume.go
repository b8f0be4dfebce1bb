package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/cache"
	"oneclaw/storage"
)

// leasedChats are those that processes share.
type leasedChats struct{ b *Bridge }

var _ queue.Chats = leasedChats{}

// Home implements [queue.Chats].
func (l leasedChats) Home(chat chats.Chat) chats.Chat { return l.b.lanes.CurrentChat(chat) }

// Take implements [queue.Chats].
func (l leasedChats) Take(ctx context.Context, in queue.ChatFilter, mark func(chats.Chat) string) (begin func(), err error) {
	return l.b.takeOver(ctx, in, mark)
}

// Lost implements [queue.Chats].
func (l leasedChats) Lost(in queue.ChatFilter) {
	l.b.lanes.DropChats(in)
	l.b.signs.Drop(in)
}

// Busy implements [queue.Chats].
func (l leasedChats) Busy(in queue.ChatFilter) bool { return l.b.lanes.AnyRunning(in) }

// takeOver takes what others have left open in some chats: a former run of the program, or
// another process. Begin has it go on.
func (b *Bridge) takeOver(ctx context.Context, in queue.ChatFilter, mark func(chats.Chat) string) (begin func(), err error) {
	b.turns.Cache.Clear() // another process may have answered here since
	as := b.jobs
	as.LeaseToken = mark
	open, broken, err := as.Open(ctx, "", in)
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	sweep, err := b.signs.Load(ctx, in, open)
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	open = b.intake.hold(open)
	aside := make(map[string]bool) // what this process is about to close is not taken from it
	for _, j := range open {
		aside[j.Key()] = j.Unclaimed || b.lanes.Has(j.Key())
	}
	taken, err := as.ClaimAll(ctx, slices.DeleteFunc(slices.Clone(open), func(j *queue.Run) bool { return aside[j.Key()] }))
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	for _, err := range broken {
		if d, is := errors.AsType[*queue.DamagedError](err); is {
			if err := b.keeper.mendJob(ctx, d); err != nil {
				return nil, fmt.Errorf("take chats over: %w", err)
			}
		}
	}
	if err := b.stops.found(ctx, taken); err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	// What was accepted after something that is left aside comes after it; see overtaken.
	behind := make(map[chats.Chat]bool)
	now := make(map[string]bool)
	for _, j := range slices.SortedFunc(slices.Values(open), queue.Order) { // taken, they may have begun
		behind[j.Origin()] = behind[j.Origin()] || aside[j.Key()]
		now[j.Key()] = !behind[j.Origin()]
	}
	// A move that is left aside holds up its chats before any of them is this process's: the chats are
	// taken side by side, and what was written behind it belongs into the new chat.
	moves := make(map[*queue.Run]blocker)
	for _, j := range open {
		if w, ok := b.workers.of(j).(blocker); ok && aside[j.Key()] && !b.lanes.Has(j.Key()) {
			moves[j] = w
			w.block(j)
		}
	}
	return func() {
		b.goOn(slices.DeleteFunc(taken, func(j *queue.Run) bool { return !now[j.Key()] }))
		sweep()
		for j, w := range moves {
			if b.intake.lookFirst(b.lanes.Context(), j); !b.lanes.Has(j.Key()) {
				w.unblock(j) // it was carried out, or is tried again
			}
		}
		for chat, is := range behind {
			if is {
				b.intake.see(chat)
			}
		}
		b.intake.lookAgain()
	}, nil
}

// goOn queues jobs that were taken over.
func (b *Bridge) goOn(open []*queue.Run) {
	for _, j := range open {
		if w, ok := b.workers.of(j).(blocker); ok {
			w.block(j)
		}
	}
	for _, j := range open {
		d := outbox.Of(j)
		if late := b.intake.waited(j); late > 0 && j.State == receipts.Open && d.Parts == nil && d.Notice == "" {
			d.Delay = late
			b.intake.late.Put(j.Message.Chat, b.cfg.Now(), cache.Forever)
		}
		j.Restarted = true
		b.sender.Resume(j)
		b.lanes.Enqueue(j)
	}
	if len(open) > 0 {
		b.log.Info("resuming open jobs", "count", len(open))
	}
}

// number has new jobs get higher numbers than any that is on record: a message with a lower
// number than the /clear before it would be taken for an older one.
func (b *Bridge) number(ctx context.Context) error {
	open, _, err := b.jobs.Open(ctx, "", queue.AllChats)
	if err != nil {
		return err
	}
	var newest int64
	var seen storage.Revision
	for _, j := range open {
		newest, seen = max(newest, j.Seq), max(seen, j.Rev)
	}
	for entry, err := range b.store.List(ctx, storage.Range{Prefix: conversation.SessionPrefix}) {
		if err != nil {
			return fmt.Errorf("list sessions: %w", err)
		}
		var s conversation.Session
		if err := json.Unmarshal(entry.Value, &s); err != nil {
			b.log.Error("session cannot be read and is left alone", "key", entry.Key, "err", err)
			continue
		}
		newest, seen = max(newest, s.ClearedAt, s.StoppedAt), max(seen, entry.Revision)
	}
	return b.jobs.Begin(ctx, newest, seen)
}
