package slack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
)

// debt is a thread in which something was said that Slack would not tell the place of when
// it came: whether the bot takes part there was not to be found out. It is acknowledged all
// the same, because Slack gives up soon, and fetched again from since on.
type debt struct {
	Since  string `json:"since"`
	Kind   string `json:"kind"`
	Shared bool   `json:"shared,omitempty"`
}

// maxDebts bounds the threads to fetch from. What is more is not acknowledged.
const maxDebts = 200

// owe notes on disk that a message is still to be looked at.
func (r *receiver) owe(ctx context.Context, e *event) error {
	if r.kv == nil {
		return errors.New("slack: nothing is kept across restarts")
	}
	m := e.subject()
	if !r.reach.owe(e.chat(m), debt{Since: m.TS, Kind: e.ChannelType, Shared: e.shared}) {
		return errors.New("slack: too many threads are still to be looked at")
	}
	if err := r.trySaveMarks(ctx); err != nil {
		return fmt.Errorf("slack: note a message to look at: %w", err)
	}
	r.reach.ring()
	return nil
}

// owe notes a debt; of two in a thread the older one counts. It reports false where there
// are too many.
func (r *reach) owe(chat chats.Chat, d debt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	have, known := r.owed[chat]
	if !known && len(r.owed) >= maxDebts {
		return false
	}
	if !known || d.Since < have.Since {
		r.owed[chat], r.changed = d, true
	}
	return true
}

// settled forgets a debt, unless there is an older one meanwhile.
func (r *reach) settled(chat chats.Chat, d debt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owed[chat] == d {
		delete(r.owed, chat)
		r.changed = true
	}
}

func (r *reach) debts() map[chats.Chat]debt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.owed)
}

// ring wakes who fills gaps.
func (r *reach) ring() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// settle looks at what was put off, until nothing is left or ctx ends.
func (r *receiver) settle(ctx context.Context) {
	pauses := retry.New(minBackOff, maxBackOff)
	for debts := r.reach.debts(); len(debts) > 0 && ctx.Err() == nil; debts = r.reach.debts() {
		var failed error
		for _, chat := range slices.SortedFunc(maps.Keys(debts), func(a, b chats.Chat) int { return stamp(debts[a].Since).Compare(stamp(debts[b].Since)) }) {
			d := debts[chat]
			from := stamp(d.Since).Add(-time.Microsecond)
			oldest := fmt.Sprintf("%d.%06d", from.Unix(), from.Nanosecond()/1000)
			_, err := r.fillThread(ctx, conversation{id: chat.ID, kind: d.Kind, shared: d.Shared}, chat.Thread, oldest)
			if err != nil {
				failed = err
				continue
			}
			r.reach.settled(chat, d)
		}
		if failed != nil {
			wait := pauses.Next(asked(failed))
			r.log.Warn("not known yet whether messages are for the bot", "threads", len(debts), "wait", wait, "err", failed)
			_ = retry.Wait(ctx, wait) // the loop looks at ctx
		}
	}
}
