// Package wire has what the emulators share: reading arguments, recording calls, and failing on
// purpose.
package wire

import (
	"net"
	"net/http"
	"sync"
)

// Watch counts the open connections of a server.
type Watch struct{ open sync.WaitGroup }

// Follow is an http.Server's ConnState. It may be called concurrently.
func (w *Watch) Follow(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		w.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		w.open.Done()
	}
}

// Wait returns when no connection is open, except hijacked ones.
func (w *Watch) Wait() { w.open.Wait() }
