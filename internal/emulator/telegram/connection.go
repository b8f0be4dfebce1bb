package telegram

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// connection remembers whether the last thing that came over a connection was a send.
type connection struct {
	sending atomic.Bool
}

type connectionKey struct{}

// attach gives each request the connection that it came over.
func (s *Server) attach(ctx context.Context, conn net.Conn) context.Context {
	c := &connection{}
	s.connections.Store(conn, c)
	return context.WithValue(ctx, connectionKey{}, c)
}

// follow counts connections, whose goroutines may outlive their last request: Close
// waits for them too.
func (s *Server) follow(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.active.Add(1)
	case http.StateClosed, http.StateHijacked:
		if c, ok := s.connections.LoadAndDelete(conn); ok && c.(*connection).sending.Load() {
			s.cutOff.Add(1)
		}
		s.active.Done()
	}
}

// note marks the connection of a request, before its body is read: a client that dies
// may not have sent more than the beginning.
func note(r *http.Request, method string) {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		c.sending.Store(method == "sendmessage" || method == "sendphoto" || method == "senddocument")
	}
}

// CutOff counts the sends after which nothing more came over their connection before it
// ended: those whose request or answer broke off, and those answered just before the
// client died, which nobody can tell from the others. A client that closes an idle
// connection in peace counts as well, so this is a bound from above.
func (st State) CutOff() int { return int(st.s.cutOff.Load()) }
