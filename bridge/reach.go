package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/internal/cache"
	"oneclaw/internal/rescue"
	"oneclaw/storage"
)

const (
	// unreachablePrefix begins the keys of the records of chats that take no messages from the bot.
	unreachablePrefix = "unreachable/"
	// reachAgainAfter is how long tasks pause in such a chat before one is tried again: the platform may not have
	// told that the bot is back.
	reachAgainAfter = 24 * time.Hour
)

// reach remembers the chats in which the bot is blocked, or from which it was removed. Tasks there pause: each would
// cost a model call, and nobody would see the answer.
type reach struct {
	store  storage.KV
	report func(ctx context.Context, key, text string) (int, error) // as in [Hooks]; may be nil
	now    func() time.Time
	log    *slog.Logger
	// silent holds the keys of the chats that this process has found unreachable.
	silent *cache.Cache[string, bool]
	// heard holds the keys of the chats from which a message came to this process.
	heard *cache.Cache[string, bool]
}

// maxSilent bounds the chats in [reach].silent and [reach].heard.
const maxSilent = 10_000

// unreachable is the record of a chat.
type unreachable struct {
	Since time.Time `json:"since"`
	// Tried is when the chat last refused a message.
	Tried time.Time `json:"tried"`
}

func unreachableKey(chat chats.Chat) string { return unreachablePrefix + chat.WithoutThread().String() }

// find returns the record of a chat; nil if the chat can be reached.
func (r *reach) find(ctx context.Context, chat chats.Chat) (*unreachable, storage.Revision, error) {
	known, rev, err := storage.Load[unreachable](ctx, r.store, unreachableKey(chat))
	if rev == storage.Absent {
		return nil, rev, err
	}
	return &known, rev, nil // a damaged one counts as old
}

// isPaused reports whether a task in a chat should not run now.
func (r *reach) isPaused(ctx context.Context, chat chats.Chat) (bool, error) {
	known, _, err := r.find(ctx, chat)
	if known != nil {
		r.silent.Put(unreachableKey(chat), true, cache.Forever)
	}
	return known != nil && r.now().Sub(known.Tried) < reachAgainAfter, err
}

// setReachable records whether a chat takes messages from the bot. Administrators are told once when it does not.
func (r *reach) setReachable(ctx context.Context, chat chats.Chat, reachable bool) error {
	if reachable {
		r.silent.Forget(unreachableKey(chat))
	} else {
		r.silent.Put(unreachableKey(chat), true, cache.Forever)
	}
	known, rev, err := r.find(ctx, chat)
	switch {
	case err != nil || known == nil && reachable:
		return err
	case reachable:
		r.log.Info("a chat can be reached again", "chat", chat.String())
		err = r.store.Delete(ctx, unreachableKey(chat), rev)
	default:
		next := unreachable{Since: r.now(), Tried: r.now()}
		if known != nil {
			next.Since = known.Since
		}
		_, err = storage.Save(ctx, r.store, unreachableKey(chat), next, rev)
	}
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrNotFound) {
		return nil // another process has recorded it
	}
	if err != nil {
		return fmt.Errorf("record whether %s can be reached: %w", chat, err)
	}
	if reachable || known != nil {
		return nil
	}
	r.log.Warn("a chat takes no messages any more: its tasks pause", "chat", chat.String())
	if r.report != nil {
		text := fmt.Sprintf("I cannot write to the chat `%s` any more: I was blocked there or removed. What is scheduled there waits until I can write there again.", chat.WithoutThread())
		if _, err := r.report(ctx, unreachableKey(chat)+"/"+r.now().UTC().Format(time.DateOnly), text); err != nil {
			r.log.Warn("administrators cannot be told that a chat takes no messages", "chat", chat.String(), "err", err)
		}
	}
	return nil
}

// onMessage records that a chat from which a message came can be reached, as a platform may not tell that the bot is
// back.
func (r *reach) onMessage(ctx context.Context, chat chats.Chat) {
	key := unreachableKey(chat)
	if r.heard.Has(key) && !r.silent.Has(key) {
		return
	}
	r.heard.Put(key, true, cache.Forever)
	if err := r.setReachable(ctx, chat, true); err != nil {
		r.log.Warn("tasks of a chat that can be reached again still pause", "chat", chat.String(), "err", err)
	}
}

// onRefused records that a chat refused a message.
func (r *reach) onRefused(ctx context.Context, chat chats.Chat) {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	if err := r.setReachable(writing, chat, false); err != nil {
		r.log.Warn("tasks of a chat that takes no messages go on", "chat", chat.String(), "err", err)
	}
}

// SetMember implements [chats.MembershipInbox].
func (b *Bridge) SetMember(ctx context.Context, chat chats.Chat, member bool) error {
	if err := b.AwaitReady(ctx); err != nil {
		return fmt.Errorf("membership: %w", err)
	}
	return rescue.Do(func() error { return b.reach.setReachable(ctx, chat, member) })
}
