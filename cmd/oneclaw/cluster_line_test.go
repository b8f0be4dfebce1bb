package main

import (
	"context"
	"net"
	"sync"
	"testing"
)

// line is the way of one replica to a place where a server of the database may be. It can
// be cut, and it can fall silent, so that nothing comes through and nothing says so until
// it speaks again.
type line struct {
	listener net.Listener
	running  sync.WaitGroup

	mu    sync.Mutex
	to    string
	cut   bool
	open  chan struct{} // closed while the line is not silent
	conns map[net.Conn]bool
}

func newLine(t testing.TB, to string) *line {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: listener, to: to, open: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(l.open)
	ctx, cancel := context.WithCancel(context.Background())
	l.running.Go(func() { l.serve(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		l.hangUp()
		l.running.Wait()
	})
	return l
}

// address is where the replica finds the line.
func (l *line) address() string { return l.listener.Addr().String() }

// lead has what comes from now on go to another server.
func (l *line) lead(to string) {
	l.mu.Lock()
	l.to = to
	l.mu.Unlock()
	l.hangUp()
}

// leads returns the server that the line goes to.
func (l *line) leads() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to
}

// sever closes all connections and takes no others, until join.
func (l *line) sever() {
	l.mu.Lock()
	l.cut = true
	l.mu.Unlock()
	l.hangUp()
}

func (l *line) join() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// mute lets nothing through until speak: then all that was held arrives late.
func (l *line) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

func (l *line) speak() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.open)
}

func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.Close()
	}
}

func (l *line) serve(ctx context.Context) {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() { l.connect(ctx, conn) })
	}
}

func (l *line) connect(ctx context.Context, near net.Conn) {
	defer l.keep(near)()
	if !l.passes(ctx) {
		return
	}
	l.mu.Lock()
	to, cut := l.to, l.cut
	l.mu.Unlock()
	if cut {
		return
	}
	far, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer l.keep(far)()
	var both sync.WaitGroup
	both.Go(func() { l.carry(ctx, far, near) })
	both.Go(func() { l.carry(ctx, near, far) })
	both.Wait()
}

// keep remembers a connection and returns what closes and forgets it.
func (l *line) keep(conn net.Conn) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[conn] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		_ = conn.Close()
		delete(l.conns, conn)
	}
}

// passes waits until the line is not silent.
func (l *line) passes(ctx context.Context) bool {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	}
}

// carry copies one direction, and ends both.
func (l *line) carry(ctx context.Context, to, from net.Conn) {
	defer func() { _ = to.Close(); _ = from.Close() }()
	held := make([]byte, 64<<10)
	for {
		n, err := from.Read(held)
		if n > 0 {
			if !l.passes(ctx) {
				return
			}
			if _, err := to.Write(held[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
