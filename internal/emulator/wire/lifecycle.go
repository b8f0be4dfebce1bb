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

// Lifecycle is the running of an emulator, from its first listener until nothing runs
// any more.
type Lifecycle struct {
	// TLS, where it is set before the first Serve, is what everything is served with.
	TLS *tls.Config

	name   string
	ended  error
	mu     *sync.Mutex
	log    *slog.Logger
	done   chan struct{}
	active sync.WaitGroup
	watch  Watch

	// Guarded by mu.
	closed  bool
	serving []*http.Server
	down    []*http.Server // that are to serve again

	broken contractErrors
}

// maxBroken bounds the errors that are kept of a contract.
const maxBroken = 10

// contractErrors are what was taken or sent against the contract of a service.
type contractErrors struct {
	mu   sync.Mutex
	list []error
}

// NewLifecycle makes the lifecycle of the emulator of that name. Mu is the lock of the
// emulator's own state, so that closing it and changing it exclude each other. Ended is
// the error for whoever comes too late.
func NewLifecycle(name string, ended error, mu *sync.Mutex, log *slog.Logger) *Lifecycle {
	return &Lifecycle{name: name, ended: ended, mu: mu, log: log, done: make(chan struct{})}
}

// Listen listens on a free port of 127.0.0.1, or on addr where given.
func (l *Lifecycle) Listen(ctx context.Context, addr ...string) (net.Listener, error) {
	at := "127.0.0.1:0"
	if len(addr) > 0 {
		at = addr[0]
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("%s: listen on %s: %w", l.name, at, err)
	}
	return ln, nil
}

// Serve lets a handler answer what comes to a listener, until [Lifecycle.Close]. It
// returns at once, with the URL of the listener.
func (l *Lifecycle) Serve(ln net.Listener, handler http.Handler) (string, error) {
	hs := &http.Server{Addr: ln.Addr().String(), Handler: handler, ReadHeaderTimeout: 10 * time.Second, ConnState: l.watch.Follow}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", errors.Join(l.ended, ln.Close())
	}
	serve := hs.Serve
	if l.TLS != nil {
		hs.TLSConfig, hs.Protocols = l.TLS.Clone(), protocols(l.TLS)
		hs.ErrorLog = slog.NewLogLogger(l.log.Handler(), slog.LevelDebug) // who trusts no such certificate
		serve = func(ln net.Listener) error { return hs.ServeTLS(ln, "", "") }
	}
	l.serving = append(l.serving, hs)
	l.active.Go(func() {
		if err := serve(ln); !errors.Is(err, http.ErrServerClosed) {
			l.log.Error("emulator stopped serving", "err", err)
		}
	})
	return l.scheme("http") + ln.Addr().String(), nil
}

// scheme begins an address of a server that speaks a protocol, or its secure form.
func (l *Lifecycle) scheme(protocol string) string {
	if l.TLS != nil {
		protocol += "s"
	}
	return protocol + "://"
}

// Address is where a request has reached the server, for one that speaks a protocol.
func (l *Lifecycle) Address(protocol string, r *http.Request) string {
	return l.scheme(protocol) + r.Host
}

// Close ends every request and waits until nothing runs any more. Stop, where there is
// one, ends what else the emulator has open; it runs once, under the lock.
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
	l.watch.Wait()
	l.broken.mu.Lock()
	defer l.broken.mu.Unlock()
	return errors.Join(append(errs, l.broken.list...)...)
}

// Broken keeps an error that [Contract.Check] found, if it is one: [Lifecycle.Close] returns it.
func (l *Lifecycle) Broken(err error) {
	l.broken.mu.Lock()
	defer l.broken.mu.Unlock()
	if err != nil && len(l.broken.list) < maxBroken {
		l.broken.list = append(l.broken.list, fmt.Errorf("%s: against the contract: %w", l.name, err))
	}
}

// Down has nobody listen any more and breaks the connections, until [Lifecycle.Up]. What a
// handler has taken over, such as a socket, lives on.
func (l *Lifecycle) Down() error {
	l.mu.Lock()
	serving := l.serving
	l.down, l.serving = append(l.down, serving...), nil
	l.mu.Unlock()
	var errs []error
	for _, hs := range serving {
		errs = append(errs, hs.Close())
	}
	return errors.Join(errs...)
}

// Up listens again where [Lifecycle.Down] has ended it.
func (l *Lifecycle) Up(ctx context.Context) error {
	l.mu.Lock()
	down := l.down
	l.down = nil
	l.mu.Unlock()
	var errs []error
	for _, hs := range down {
		ln, err := l.Listen(ctx, hs.Addr)
		if err == nil {
			_, err = l.Serve(ln, hs.Handler)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Enter counts a request in, unless the emulator is closed. Each that was counted in
// must end with [Lifecycle.Leave].
func (l *Lifecycle) Enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.active.Add(1)
	return true
}

// Leave counts a request out.
func (l *Lifecycle) Leave() { l.active.Done() }

// Go runs what [Lifecycle.Close] waits for. The caller holds the lock and has seen that
// the emulator is not closed, or is itself waited for.
func (l *Lifecycle) Go(run func()) { l.active.Go(run) }

// Closed says whether the emulator is closed. The lock is to be held by the caller.
func (l *Lifecycle) Closed() bool { return l.closed }

// Done is closed when the emulator is.
func (l *Lifecycle) Done() <-chan struct{} { return l.done }

// Sleep waits for d, or without end where d is 0. It reports false where the client
// or the emulator went away first.
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
