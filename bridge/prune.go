package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"oneclaw/storage"
)

// What the bridge keeps in the store, and what bounds it:
//
//	job/open/     as many as wait: at most Config.MaxWaiting for each chat, besides
//	              commands, which do not wait for anything
//	job/done/     receipts, for ReceiptAge
//	card/         cards, for ReceiptAge after they were closed; they expire
//	access/       people who were let in, one record for each; those who were not are
//	              forgotten when their time is over
//	aside/        what was set aside, for AsideAge
//	session/      one record for each chat that was cleared or stopped
//	conversation/ one record for each conversation; those of tasks for TaskAge
//
// The logs hold the conversations. Those of chats stay, cleared or not: their history
// can be searched. Those of tasks go with their record.

// TaskAge is how long the conversations of tasks are kept: their answers are in the
// chat, and there may be one every few minutes.
const TaskAge = 90 * 24 * time.Hour

// pruneInterval is how often what is too old is looked for, after a first time at the
// start.
const pruneInterval = time.Hour

// prune removes what is too old until ctx ends. A clock that has just jumped is not
// believed until the next time: what is removed because of it would be missed.
func (b *Bridge) prune(ctx context.Context) {
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	seen, jumped := b.cfg.Now().Round(0), false
	for {
		if jumped {
			b.log.Warn("the clock has jumped: nothing is pruned until the next time", "now", seen)
		} else if err := b.pruneOnce(ctx); err != nil && ctx.Err() == nil {
			b.log.Warn("what is too old could not be pruned", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := b.cfg.Now().Round(0)
		jumped = (now.Sub(seen) - pruneInterval).Abs() > pruneInterval
		seen = now
	}
}

// pruneOnce goes on with the rest where one kind fails.
func (b *Bridge) pruneOnce(ctx context.Context) error {
	now := b.cfg.Now()
	receipts, err := b.jobs.prune(ctx, now)
	tasks, tasksErr := b.pruneTasks(ctx, now.Add(-TaskAge))
	if receipts+tasks > 0 {
		b.log.Debug("pruned", "receipts", receipts, "tasks", tasks)
	}
	return errors.Join(err, b.cards.prune(ctx, now.Add(-ReceiptAge)), tasksErr, b.people.prune(ctx, now), b.pruneAsides(ctx, now.Add(-AsideAge)))
}

// prune removes receipts that were closed longer ago than ReceiptAge. One from the future
// was written when the clock was wrong: it counts from now on.
func (s jobs) prune(ctx context.Context, now time.Time) (int, error) {
	removed := 0
	for entry, err := range s.kv.List(ctx, storage.Range{Prefix: receiptPrefix}) {
		if err != nil {
			return removed, fmt.Errorf("list receipts: %w", err)
		}
		j := &Job{}
		if err := json.Unmarshal(entry.Value, j); err == nil {
			age := now.Sub(j.Closed)
			if age >= -ReceiptAge && age <= ReceiptAge {
				continue
			}
			if age < 0 {
				if err := s.redate(ctx, j, now, entry); err != nil {
					return removed, err
				}
				continue
			}
		}
		if err := s.kv.Delete(ctx, entry.Key, storage.Any); err != nil {
			return removed, fmt.Errorf("remove receipt: %w", err)
		}
		removed++
	}
	return removed, nil
}

func (s jobs) redate(ctx context.Context, j *Job, now time.Time, entry storage.Entry) error {
	j.Closed = now
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode receipt: %w", err)
	}
	_, err = s.kv.Put(ctx, entry.Key, data, entry.Revision)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("store receipt: %w", err)
	}
	return nil
}

// pruneTasks removes the conversations of tasks that began before the given time.
func (b *Bridge) pruneTasks(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	for entry, err := range b.store.List(ctx, storage.Range{Prefix: conversationPrefix}) {
		if err != nil {
			return removed, fmt.Errorf("list conversations: %w", err)
		}
		var c Conversation
		if json.Unmarshal(entry.Value, &c) != nil || c.Task == "" || !c.Begun.Before(before) {
			continue
		}
		if _, open := b.open.Load(jobKey(Message{Chat: c.Chat, ID: c.Task, Kind: KindTask})); open {
			continue
		}
		// The record last: it is what finds the log again after a crash.
		if err := b.store.Drop(ctx, c.Log()); err != nil {
			return removed, fmt.Errorf("remove %s: %w", c.Log(), err)
		}
		if err := b.store.Delete(ctx, entry.Key, storage.Any); err != nil {
			return removed, fmt.Errorf("remove %s: %w", entry.Key, err)
		}
		removed++
	}
	return removed, nil
}
