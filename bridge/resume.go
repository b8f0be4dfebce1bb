package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/internal/cache"
	"oneclaw/storage"
)

func (b *Bridge) resume(ctx context.Context) error {
	open, broken, err := b.jobs.Open(ctx)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	slices.SortFunc(open, func(a, c *jobs.Job) int { return cmp.Compare(a.Seq, c.Seq) })
	if b.intake.last, err = b.newestSeq(ctx, open); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	for _, err := range broken {
		if d, is := errors.AsType[*jobs.DamagedError](err); is {
			if err := b.keeper.mendJob(ctx, d); err != nil {
				return fmt.Errorf("resume: %w", err)
			}
		}
	}
	for _, j := range open {
		if j.Message.Kind == jobs.KindMove {
			b.lanes.Bar(endsOf(j))
		}
	}
	if err := b.stops.found(ctx, open); err != nil {
		return fmt.Errorf("resume: %w", err)
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
	return nil
}

// newestSeq returns the highest number that is on record. The clock may have been set
// back since: a message with a lower number than the /clear before it would be taken for
// an older one.
func (b *Bridge) newestSeq(ctx context.Context, open []*jobs.Job) (int64, error) {
	var newest int64
	for _, j := range open {
		newest = max(newest, j.Seq)
	}
	for entry, err := range b.store.List(ctx, storage.Range{Prefix: sessions.SessionPrefix}) {
		if err != nil {
			return 0, fmt.Errorf("list sessions: %w", err)
		}
		var s sessions.Session
		if err := json.Unmarshal(entry.Value, &s); err != nil {
			b.log.Error("session cannot be read and is left alone", "key", entry.Key, "err", err)
			continue
		}
		newest = max(newest, s.ClearedAt, s.StoppedAt)
	}
	return newest, nil
}
