package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"oneclaw/internal/config"
)

// chatName matches the id of a chat or a user, which the port must not reveal, since it has no password.
var chatName = regexp.MustCompile(`\b(` + strings.Join(config.PlatformNames(), "|") + `):[-\w@.:/]*[\w]`)

// healthHandler returns a mux with the liveness and readiness checks.
func healthHandler(health func() error) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := health(); err != nil {
			http.Error(w, chatName.ReplaceAllString(err.Error(), "a chat of $1"), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	return mux
}

// Listen opens a port. If the port is in use, the error names the setting to change.
func Listen(ctx context.Context, address, setting string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use: stop the other program, or set %s to a free one", address, setting)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

// Bounds of the port, which is open to the network.
const (
	// portTimeout bounds reading a request. From its header on, the response may take twice as long.
	portTimeout = 15 * time.Second
	// maxConnections bounds the open connections; a quarter of the process's descriptors does too. More
	// connections wait in the system's queue.
	maxConnections = 256
)

// servePort serves the port until ctx ends, with at most most connections and with timeouts.
func servePort(ctx context.Context, l net.Listener, handler http.Handler, most int, timeout time.Duration) error {
	return serve(ctx, netutil.LimitListener(l, most), &http.Server{
		Handler: handler, ReadHeaderTimeout: timeout / 3, ReadTimeout: timeout, WriteTimeout: 2 * timeout, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
	})
}

// Serve serves until ctx ends, which also ends running requests.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	return serve(ctx, l, &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	})
}

// serve serves until ctx ends, and then gives running requests a second.
func serve(ctx context.Context, l net.Listener, server *http.Server) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(closing) != nil {
			_ = server.Close() // running requests must not outlive the caller
		}
	}()
	err := server.Serve(l)
	if ctx.Err() == nil {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	<-done
	return nil
}
