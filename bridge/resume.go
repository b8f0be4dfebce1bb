package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/owners"
	"oneclaw/bridge/sessions"
	"oneclaw/internal/cache"
	"oneclaw/storage"
)

// takeOver takes what others have left open in some chats: a former run of the program, or
// another process. Begin has it go on.
func (b *Bridge) takeOver(ctx context.Context, in owners.Chats, mark func(chats.Chat) string) (begin func(), err error) {
	// What is cut short here must not write under the same marks.
	if err := b.lanes.Still(ctx, in); err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	b.turns.Cache.Forget() // another process may have answered here since
	as := b.jobs
	as.Mark = mark
	open, broken, err := as.Open(ctx, "", in)
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	sweep, err := b.signs.Load(ctx, in, open)
	if err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	offered := make(map[chats.Chat]bool)
	open = slices.DeleteFunc(open, func(j *jobs.Job) bool {
		offered[j.Origin()] = offered[j.Origin()] || j.Offer
		// A message that nobody has begun with stays behind what was offered before it. What
		// this process is about to close is not taken from it.
		return j.Offer || offered[j.Origin()] && !b.hasBegun(ctx, j) || b.lanes.Has(j.Key())
	})
	maps.DeleteFunc(offered, func(_ chats.Chat, is bool) bool { return !is })
	if open, err = as.TakeAll(ctx, open); err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	for _, err := range broken {
		if d, is := errors.AsType[*jobs.DamagedError](err); is {
			if err := b.keeper.mendJob(ctx, d); err != nil {
				return nil, fmt.Errorf("take chats over: %w", err)
			}
		}
	}
	if err := b.stops.found(ctx, open); err != nil {
		return nil, fmt.Errorf("take chats over: %w", err)
	}
	return func() {
		b.goOn(open)
		sweep()
		for chat := range offered {
			b.intake.see(chat)
		}
		b.intake.lookAgain()
	}, nil
}

// hasBegun reports whether somebody has begun with a job, or may have.
func (r *rooms) hasBegun(ctx context.Context, j *jobs.Job) bool {
	if !j.Fresh() {
		return true
	}
	session, err := sessions.Of(ctx, r.store, j)
	if err != nil {
		return true // its own turn meets that
	}
	seen := 0
	for m, err := range sessions.RecentMessages(ctx, r.store, session.Log()) {
		if seen++; err != nil || m.Ref == j.Key() || seen > maxBegun {
			return err != nil || m.Ref == j.Key()
		}
	}
	return false
}

// maxBegun bounds the messages that are looked through for the question of a job.
const maxBegun = 1000

// goOn queues jobs that were taken over.
func (b *Bridge) goOn(open []*jobs.Job) {
	for _, j := range open {
		if j.Message.Kind == jobs.KindMove {
			b.lanes.Bar(endsOf(j))
		}
	}
	for _, j := range open {
		if late := b.intake.waited(j.Message); late > 0 && j.State == jobs.StateOpen && j.Parts == nil && j.Notice == "" {
			j.Waited = late
			b.intake.late.Put(j.Message.Chat, b.cfg.Now(), cache.Forever)
		}
		b.sender.Resume(j)
		b.lanes.Queue(j)
	}
	if len(open) > 0 {
		b.log.Info("resuming open jobs", "count", len(open))
	}
}

// number has new jobs get higher numbers than any that is on record: a message with a lower
// number than the /clear before it would be taken for an older one.
func (b *Bridge) number(ctx context.Context) error {
	open, _, err := b.jobs.Open(ctx, "", owners.All)
	if err != nil {
		return err
	}
	var newest int64
	var seen storage.Revision
	for _, j := range open {
		newest, seen = max(newest, j.Seq), max(seen, j.Rev)
	}
	for entry, err := range b.store.List(ctx, storage.Range{Prefix: sessions.SessionPrefix}) {
		if err != nil {
			return fmt.Errorf("list sessions: %w", err)
		}
		var s sessions.Session
		if err := json.Unmarshal(entry.Value, &s); err != nil {
			b.log.Error("session cannot be read and is left alone", "key", entry.Key, "err", err)
			continue
		}
		newest, seen = max(newest, s.ClearedAt, s.StoppedAt), max(seen, entry.Revision)
	}
	return b.jobs.Begin(ctx, newest, seen)
}
