// Package wire has the code that the emulators share. It reads arguments, records calls and injects
// failures.
package wire

import (
	"net"
	"net/http"
	"sync"
)

// ConnTracker counts the open connections of a server.
type ConnTracker struct{ open sync.WaitGroup }

// Track is a server's [http.Server.ConnState]. It may be called concurrently.
func (w *ConnTracker) Track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		w.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		w.open.Done()
	}
}

// Wait returns when no connection is open, except for hijacked ones.
func (w *ConnTracker) Wait() { w.open.Wait() }
