// Package wire is what the emulators of services share: how they read arguments, and
// what an observer of the wire can say about sends whose client died.
package wire

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// Watch counts the connections of a server and the sends that were cut off. Its methods
// are hooks of an http.Server, and may be called concurrently.
type Watch struct {
	open        sync.WaitGroup
	connections sync.Map // of net.Conn to *connection
	cutOff      atomic.Int64
}

// connection remembers whether the last thing that came over it was a send.
type connection struct{ sending atomic.Bool }

type connectionKey struct{}

// Attach gives each request the connection that it came over: an http.Server's ConnContext.
func (w *Watch) Attach(ctx context.Context, conn net.Conn) context.Context {
	c := &connection{}
	w.connections.Store(conn, c)
	return context.WithValue(ctx, connectionKey{}, c)
}

// Follow is an http.Server's ConnState.
func (w *Watch) Follow(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		w.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		if c, ok := w.connections.LoadAndDelete(conn); ok && c.(*connection).sending.Load() {
			w.cutOff.Add(1)
		}
		w.open.Done()
	}
}

// Note says whether a request is a send. It is to be called before the body is read: a
// client that dies may not have sent more than the beginning.
func (*Watch) Note(r *http.Request, send bool) {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		c.sending.Store(send)
	}
}

// Wait returns when no connection is open. Hijacked ones are their owner's.
func (w *Watch) Wait() { w.open.Wait() }

// CutOff counts the sends after which nothing more came over their connection before it
// ended: those whose request or answer broke off, and those answered just before the
// client died, which nobody can tell from the others. A client that closes an idle
// connection in peace counts as well, so this is a bound from above.
func (w *Watch) CutOff() int { return int(w.cutOff.Load()) }
