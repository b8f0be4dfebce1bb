package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"

	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/web"
)

// chatName matches the name of a chat or a person: the port has no password.
var chatName = regexp.MustCompile(`\b(telegram|slack):[-\w@.:/]*[\w]`)

// healthHandler answers the questions of a supervisor: is it alive, does it receive.
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

// listen takes a port. The setting is named where that fails.
func listen(ctx context.Context, address, setting string) (net.Listener, error) {
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

// Bounds of the port, which anybody may reach.
const (
	// portTimeout is how long a request may take to arrive, and its answer to be fetched.
	portTimeout = 15 * time.Second
	// maxConnections is how many are open at once, or a quarter of the descriptors where
	// that is less. More wait in the system's queue.
	maxConnections = 256
)

// servePort answers on the port until ctx ends, within bounds.
func servePort(ctx context.Context, l net.Listener, handler http.Handler, most int, timeout time.Duration) error {
	return web.Serve(ctx, netutil.LimitListener(l, most), &http.Server{
		Handler: handler, ReadHeaderTimeout: timeout / 3, ReadTimeout: timeout, WriteTimeout: 2 * timeout, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
	})
}

// serve answers until ctx ends.
func serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	return web.Serve(ctx, l, &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10})
}

// healthCommand asks a running bot whether it is alive: the health check of the
// container image, which has no other program in it.
func healthCommand(load loader) *cobra.Command {
	return &cobra.Command{
		Use:    "health",
		Short:  "Ask the running bot whether it is alive",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: load.run(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			host, port, err := net.SplitHostPort(cfg.Listen)
			if err != nil {
				return fmt.Errorf("setting listen: %w", err)
			}
			if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
				host = "127.0.0.1"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
			if err != nil {
				return fmt.Errorf("ask for health: %w", err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return fmt.Errorf("the bot does not answer: %w", err)
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != http.StatusOK {
				return fmt.Errorf("the bot answers %s", response.Status)
			}
			return nil
		}),
	}
}
