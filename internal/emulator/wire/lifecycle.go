package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Lifecycle is the lifecycle of an emulator, from its first listener until everything has stopped.
type Lifecycle struct {
	// TLS, if set before Start, configures TLS.
	TLS *tls.Config

	name      string
	closedErr error
	mu        *sync.Mutex
	log       *slog.Logger
	done      chan struct{}
	active    sync.WaitGroup
	conns     connTracker

	// Guarded by mu.
	closed    bool
	serving   []*http.Server
	suspended []*http.Server // served again by Resume

	violations contractErrors
}

// maxViolations bounds the stored contract errors.
const maxViolations = 10

// contractErrors are violations of a service's contract.
type contractErrors struct {
	mu   sync.Mutex
	list []error
}

// NewLifecycle returns the lifecycle of the named emulator. mu is the lock of the emulator's state, so
// that closing the emulator and changing its state exclude each other. ended is the error after Close.
func NewLifecycle(name string, ended error, mu *sync.Mutex, log *slog.Logger) *Lifecycle {
	return &Lifecycle{name: name, closedErr: ended, mu: mu, log: log, done: make(chan struct{})}
}

// Start listens on a free port of 127.0.0.1, or on addr if given, and serves until [Lifecycle.Close],
// which waits for the requests. It returns the URL.
func (l *Lifecycle) Start(ctx context.Context, handler http.Handler, addr ...string) (string, error) {
	return l.serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		closed := l.closed
		if !closed {
			l.active.Add(1)
		}
		l.mu.Unlock()
		if closed {
			http.Error(w, "closed", http.StatusServiceUnavailable)
			return
		}
		defer l.active.Done()
		handler.ServeHTTP(w, r)
	}), addr...)
}

func (l *Lifecycle) serve(ctx context.Context, handler http.Handler, addr ...string) (string, error) {
	at := "127.0.0.1:0"
	if len(addr) > 0 {
		at = addr[0]
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		return "", fmt.Errorf("%s: listen on %s: %w", l.name, at, err)
	}
	hs := &http.Server{Addr: ln.Addr().String(), Handler: handler, ReadHeaderTimeout: 10 * time.Second, ConnState: l.conns.track}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", errors.Join(l.closedErr, ln.Close())
	}
	serve := hs.Serve
	if l.TLS != nil {
		hs.TLSConfig, hs.Protocols = l.TLS.Clone(), protocols(l.TLS)
		hs.ErrorLog = slog.NewLogLogger(l.log.Handler(), slog.LevelDebug) // clients that reject the certificate
		serve = func(ln net.Listener) error { return hs.ServeTLS(ln, "", "") }
	}
	l.serving = append(l.serving, hs)
	l.active.Go(func() {
		if err := serve(ln); !errors.Is(err, http.ErrServerClosed) {
			l.log.Error("emulator stopped serving", "err", err)
		}
	})
	return l.scheme("http") + hs.Addr, nil
}

// scheme returns the URL scheme of a protocol, or of its secure form if TLS is configured.
func (l *Lifecycle) scheme(protocol string) string {
	if l.TLS != nil {
		protocol += "s"
	}
	return protocol + "://"
}

// Address returns the address at which a request reached the server.
func (l *Lifecycle) Address(protocol string, r *http.Request) string {
	return l.scheme(protocol) + r.Host
}

// Close ends every request and waits for all goroutines. stop, if not nil, closes the emulator's other
// resources; it runs once, with the lock held. The error includes the recorded violations of the
// contract.
func (l *Lifecycle) Close(stop func()) error {
	l.mu.Lock()
	var serving []*http.Server
	if !l.closed {
		l.closed = true
		close(l.done)
		serving = l.serving
		if stop != nil {
			stop()
		}
	}
	l.mu.Unlock()
	var errs []error
	for _, hs := range serving {
		errs = append(errs, hs.Close())
	}
	l.active.Wait()
	l.conns.wait()
	l.violations.mu.Lock()
	defer l.violations.mu.Unlock()
	return errors.Join(append(errs, l.violations.list...)...)
}

// RecordViolation stores an error of [Contract.Check] for [Lifecycle.Close], unless it is nil.
func (l *Lifecycle) RecordViolation(err error) {
	l.violations.mu.Lock()
	defer l.violations.mu.Unlock()
	if err != nil && len(l.violations.list) < maxViolations {
		l.violations.list = append(l.violations.list, fmt.Errorf("%s: against the contract: %w", l.name, err))
	}
}

// Suspend stops listening and breaks the connections, until [Lifecycle.Resume]. Hijacked connections,
// such as sockets, stay.
func (l *Lifecycle) Suspend() error {
	l.mu.Lock()
	serving := l.serving
	l.suspended, l.serving = append(l.suspended, serving...), nil
	l.mu.Unlock()
	var errs []error
	for _, hs := range serving {
		errs = append(errs, hs.Close())
	}
	return errors.Join(errs...)
}

// Resume listens again after [Lifecycle.Suspend].
func (l *Lifecycle) Resume(ctx context.Context) error {
	l.mu.Lock()
	down := l.suspended
	l.suspended = nil
	l.mu.Unlock()
	var errs []error
	for _, hs := range down {
		_, err := l.serve(ctx, hs.Handler, hs.Addr)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Go runs a function in a goroutine that [Lifecycle.Close] waits for. The caller must hold the lock and
// have checked that the emulator is not closed, or run in such a goroutine itself.
func (l *Lifecycle) Go(run func()) { l.active.Go(run) }

// Closed reports whether the emulator is closed. The caller must hold the lock.
func (l *Lifecycle) Closed() bool { return l.closed }

// Done returns a channel that is closed when the emulator is.
func (l *Lifecycle) Done() <-chan struct{} { return l.done }

// Sleep waits for d, or forever if d is 0. It returns false if the client disconnects or the
// emulator closes first.
func (l *Lifecycle) Sleep(ctx context.Context, d time.Duration) bool {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-timer:
		return true
	case <-ctx.Done():
	case <-l.done:
	}
	return false
}
