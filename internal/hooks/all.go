package hooks

import (
	"context"
	"iter"
	"time"

	"oneclaw/storage"
)

// Hook is a webhook without its secrets.
type Hook struct {
	Name              string
	Owner, Chat, User string
	Created           time.Time
	// Deliveries counts completed deliveries. LastDelivery is the time of the last, Outcome its outcome.
	Deliveries   int
	LastDelivery time.Time
	Outcome      string
}

// All yields the webhooks of all chats, in no particular order.
func All(ctx context.Context, kv storage.KV) iter.Seq2[Hook, error] {
	return func(yield func(Hook, error) bool) {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
			var one hook
			if err == nil {
				if one, err = decodeHook(entry); err != nil {
					continue // a damaged record does not hide others
				}
			}
			if !yield(one.public(), err) || err != nil {
				return
			}
		}
	}
}

// ByUser returns the hooks that a user, as platform:id, has made or owns.
func (h *Hooks) ByUser(ctx context.Context, user string) (all []Hook, err error) {
	some, err := h.filter(ctx, madeBy(user))
	for _, one := range some {
		all = append(all, one.public())
	}
	return all, err
}

func madeBy(user string) func(hook) bool {
	return func(one hook) bool { return one.User == user || one.Owner == user }
}

func (one hook) public() Hook {
	return Hook{
		Name: one.Name, Owner: one.Owner, Chat: one.Chat, User: one.User, Created: one.Created,
		Deliveries: one.Deliveries, LastDelivery: one.LastDelivery, Outcome: one.Outcome,
	}
}
