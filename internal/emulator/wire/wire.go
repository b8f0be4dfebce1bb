// Package wire has the code that the emulators share. It reads arguments, records calls and injects
// failures.
package wire

import (
	"net"
	"net/http"
	"sync"
)

// connTracker counts the open connections of a server.
type connTracker struct{ open sync.WaitGroup }

// track is a server's [http.Server.ConnState]. It may be called concurrently.
func (w *connTracker) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		w.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		w.open.Done()
	}
}

// wait returns when no connection is open, except for hijacked ones.
func (w *connTracker) wait() { w.open.Wait() }
