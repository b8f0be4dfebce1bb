package sandbox

import (
	"context"

	"oneclaw/internal/named"
)

// slots bound how many scripts run at once: of one owner, and of all. Who waits for
// scripts of their own takes no place among all, so that others get theirs.
type slots struct {
	owners *named.Semaphores
	all    chan struct{}
}

// take waits for a slot, in the order in which it was asked for.
func (s *slots) take(ctx context.Context, owner string) (release func(), err error) {
	leave, err := s.owners.Acquire(ctx, owner)
	if err != nil {
		return nil, err
	}
	if err := named.Take(ctx, s.all); err != nil {
		leave()
		return nil, err
	}
	return func() { <-s.all; leave() }, nil
}
