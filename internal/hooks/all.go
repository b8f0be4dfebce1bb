package hooks

import (
	"context"
	"time"
)

// Hook is a webhook without its secrets, as a copy of a person's data has it.
type Hook struct {
	Name    string    `json:"name"`
	Task    string    `json:"task"`
	Owner   string    `json:"owner"`
	Chat    string    `json:"chat"`
	User    string    `json:"user"`
	Created time.Time `json:"created"`
	// Deliveries counts completed deliveries. LastDelivery is the time of the last, Outcome its outcome.
	Deliveries   int       `json:"deliveries,omitempty"`
	LastDelivery time.Time `json:"last_delivery,omitzero"`
	Outcome      string    `json:"outcome,omitempty"`
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
		Name: one.Name, Task: one.Task, Owner: one.Owner, Chat: one.Chat, User: one.User, Created: one.Created,
		Deliveries: one.Deliveries, LastDelivery: one.LastDelivery, Outcome: one.Outcome,
	}
}
