package sandbox

import (
	"context"

	"oneclaw/internal/named"
)

// slots bound the scripts that run in parallel: of one owner, and of all. A script that waits
// for others of its owner does not occupy a slot of all.
type slots struct {
	owners *named.Semaphores
	all    chan struct{}
}

// take waits for a slot, first come first served.
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
