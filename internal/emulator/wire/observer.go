package wire

import "context"

// Observer observes an emulator whose state is a view of type S. Its methods take the lock.
type Observer[K comparable, M any, S interface{ Messages(chat K) []M }] struct {
	hub   *Hub[K, M]
	state S
}

// NewObserver makes an observer of the state of the emulator to which the hub belongs.
func NewObserver[K comparable, M any, S interface{ Messages(chat K) []M }](hub *Hub[K, M], state S) *Observer[K, M, S] {
	return &Observer[K, M, S]{hub, state}
}

// View calls look with the current state.
func (o *Observer[K, M, S]) View(look func(S)) {
	o.hub.life.mu.Lock()
	defer o.hub.life.mu.Unlock()
	look(o.state)
}

// Messages returns the current messages of a chat or channel, as the state does.
func (o *Observer[K, M, S]) Messages(chat K) (all []M) {
	o.View(func(s S) { all = s.Messages(chat) })
	return all
}

// WaitFor returns once cond holds. It checks cond after every change. cond must not call the
// server. With hundreds of waiters, one [Observer.Subscribe] is cheaper.
func (o *Observer[K, M, S]) WaitFor(ctx context.Context, cond func(S) bool) error {
	return o.hub.WaitFor(ctx, func() bool { return cond(o.state) })
}

// Subscribe is [Hub.Subscribe].
func (o *Observer[K, M, S]) Subscribe(buffer int) (events <-chan Event[K, M], cancel func()) {
	return o.hub.Subscribe(buffer)
}
