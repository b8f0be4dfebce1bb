package bolt

import (
	"context"
	"iter"

	"oneclaw/storage"
)

// Watch implements storage.KV. The sequence can be iterated once.
func (s *Store) Watch(ctx context.Context, prefixes ...string) iter.Seq2[storage.Event, error] {
	return s.watchers.Watch(ctx, prefixes, func(add func()) error {
		if err := s.enter(ctx); err != nil {
			return err
		}
		defer s.leave()
		add()
		return nil
	})
}
