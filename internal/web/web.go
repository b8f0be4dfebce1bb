// Package web serves HTTP until a context ends.
package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve answers on l until ctx ends, and then lets what is under way end within a second.
func Serve(ctx context.Context, l net.Listener, server *http.Server) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(closing) != nil {
			_ = server.Close() // what is still running must not outlive the caller
		}
	}()
	err := server.Serve(l)
	if ctx.Err() == nil {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	<-done
	return nil
}
