package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// Prune deletes the conversations of tasks that began before tasksBefore, and the messages from before
// saidBefore in all conversations. If tell is not nil, it is called once before the first messages are
// erased, so that a crash cannot skip it. Prune returns how many conversations were removed, and whether
// messages were erased.
func Prune(ctx context.Context, store storage.Store, tasksBefore, saidBefore time.Time, tell func(context.Context) error) (removed int, erased bool, err error) {
	for entry, err := range receipts.Throttle(ctx, store.List(ctx, storage.Range{Prefix: ConversationPrefix})) {
		if err != nil {
			return removed, erased, fmt.Errorf("list conversations: %w", err)
		}
		var c Conversation
		if json.Unmarshal(entry.Value, &c) != nil {
			continue
		}
		old := c.Task != "" && c.StartedAt.Before(tasksBefore)
		if !old && c.oldest().Before(saidBefore) {
			if !erased && tell != nil {
				if err := tell(ctx); err != nil {
					return removed, false, err
				}
			}
			erased = true
			if old, err = c.eraseBefore(ctx, store, saidBefore, entry.Revision); err != nil {
				return removed, erased, err
			}
		}
		if !old {
			continue
		}
		if open, err := c.isOpen(ctx, store); err != nil {
			return removed, erased, err
		} else if open {
			continue
		}
		if err := c.Delete(ctx, store, entry.Revision); err != nil {
			return removed, erased, err
		}
		removed++
	}
	if erased {
		err = pruneAsked(ctx, store)
	}
	return removed, erased, err
}

// isOpen reports whether a job is open in the chat of a conversation, or, for the conversation of a
// task, whether the task is open. It reads the store, because any process may work on the job.
func (c Conversation) isOpen(ctx context.Context, store storage.Store) (bool, error) {
	prefix := queue.OpenPrefix + c.Chat.WithoutThread().String() + "/"
	if c.Task != "" {
		prefix = queue.OpenPrefix + queue.KeyOf(chats.Message{Chat: c.Chat, ID: c.Task}) // of any kind
	}
	for _, err := range store.List(ctx, storage.Range{Prefix: prefix, Limit: 1}) {
		if err != nil {
			return false, fmt.Errorf("look for open jobs of %s: %w", c.Log(), err)
		}
		return true, nil
	}
	return false, nil
}
