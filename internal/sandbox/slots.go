package sandbox

import (
	"context"

	"oneclaw/internal/named"
)

// slots bound the scripts that run in parallel: those of one owner, and all. A script
// that waits for others of its owner does not occupy one of the slots for all.
type slots struct {
	owners *named.Semaphores
	global chan struct{}
}

// acquire waits for a slot, first come first served.
func (s *slots) acquire(ctx context.Context, owner string) (release func(), err error) {
	leave, err := s.owners.Acquire(ctx, owner)
	if err != nil {
		return nil, err
	}
	if err := named.AcquireSlot(ctx, s.global); err != nil {
		leave()
		return nil, err
	}
	return func() { <-s.global; leave() }, nil
}
