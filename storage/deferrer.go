package storage

import "context"

// Deferrer is a [Store] in which a write costs a wait for the disk that others can share.
type Deferrer interface {
	// WriteDeferred is Write for what may wait: it is done together with the next write of any
	// caller, or by itself once due is closed or the store is. It returns when it is done, and
	// what reads meanwhile does not find it.
	WriteDeferred(ctx context.Context, due <-chan struct{}, ops ...Op) (Revision, error)
}

// WriteDeferred writes what may wait until due; at once where s is no [Deferrer].
func WriteDeferred(ctx context.Context, s Store, due <-chan struct{}, ops ...Op) (Revision, error) {
	if d, ok := s.(Deferrer); ok {
		return d.WriteDeferred(ctx, due, ops...)
	}
	return s.Write(ctx, ops...)
}
