package hooks

import (
	"context"
	"time"
)

// Hook is a webhook without its secrets.
type Hook struct {
	name              string
	owner, chat, user string
	created           time.Time
	// deliveries counts completed deliveries. lastDelivery is the time of the last, outcome its outcome.
	deliveries   int
	lastDelivery time.Time
	outcome      string
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
		name: one.Name, owner: one.Owner, chat: one.Chat, user: one.User, created: one.Created,
		deliveries: one.Deliveries, lastDelivery: one.LastDelivery, outcome: one.Outcome,
	}
}
