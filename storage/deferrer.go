package storage

import "context"

// Deferrer is an optional interface of a [Store] in which writes can share one wait for the disk.
type Deferrer interface {
	// WriteDeferred is Write for a write that may be delayed: it is done together with the next write of
	// any caller, or by itself when the channel due or the store is closed. WriteDeferred returns when the
	// write is done; reads do not see the write before that.
	WriteDeferred(ctx context.Context, due <-chan struct{}, ops ...Op) (Revision, error)
}

// WriteDeferred calls s.WriteDeferred, or Write at once if s is not a [Deferrer].
func WriteDeferred(ctx context.Context, s Store, due <-chan struct{}, ops ...Op) (Revision, error) {
	if d, ok := s.(Deferrer); ok {
		return d.WriteDeferred(ctx, due, ops...)
	}
	return s.Write(ctx, ops...)
}
