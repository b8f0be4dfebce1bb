package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"oneclaw/internal/guard"
)

const (
	// maxTraffic bounds the bytes that a call receives.
	maxTraffic = 64 << 20
	// maxConns bounds the open connections of a page.
	maxConns       = 128
	maxHeaderBytes = 64 << 10
	headerTimeout  = 10 * time.Second
)

var errTraffic = fmt.Errorf("the page has loaded more than %d MiB", maxTraffic>>20)

// proxy is the only way from a page to the network. It has a goroutine that accepts connections
// and one or more for each connection; close ends them all.
type proxy struct {
	dialer   *guard.PageDialer
	listener net.Listener
	server   *http.Server
	forward  *httputil.ReverseProxy
	cancel   context.CancelFunc
	handlers sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	conns     map[net.Conn]bool
	bytesLeft int64
	lastErr   error
}

// newProxy starts a proxy that connects with dialer.
func newProxy(ctx context.Context, dialer *guard.PageDialer) (*proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the proxy of a page: %w", err)
	}
	p := &proxy{dialer: dialer, listener: listener, conns: map[net.Conn]bool{}, bytesLeft: maxTraffic}
	quiet := log.New(io.Discard, "", 0)
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL, r.Out.Host = r.In.URL, r.In.Host },
		Transport: &http.Transport{
			DialContext: p.dial, DisableCompression: true, MaxResponseHeaderBytes: maxHeaderBytes,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: headerTimeout,
		},
		FlushInterval: -1,
		ErrorLog:      quiet,
		// An error page from the proxy would look like the requested page.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	p.server = &http.Server{
		Handler: p, ErrorLog: quiet, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return base },
	}
	p.handlers.Go(func() { _ = p.server.Serve(netutil.LimitListener(listener, maxConns)) })
	return p, nil
}

// lastFailure returns the error of the latest failed connection, or nil. A refused connection counts more than one that
// failed: Chromium also connects to hosts of its own accord.
func (p *proxy) lastFailure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastErr
}

// close closes all connections and waits for their goroutines.
func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
	p.cancel()
	_ = p.server.Close()
	p.handlers.Wait()
}

// beginRequest adds a request to handlers. It returns false if the proxy is closed.
func (p *proxy) beginRequest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.handlers.Add(1)
	}
	return !p.closed
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.beginRequest() {
		panic(http.ErrAbortHandler)
	}
	defer p.handlers.Done()
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward.ServeHTTP(w, r)
	default:
		http.Error(w, "this is a proxy", http.StatusBadRequest)
	}
}

// tunnel connects the browser to the requested host.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, "not connected", http.StatusBadGateway)
		return
	}
	defer func() { _ = there.Close() }()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "not connected", http.StatusBadGateway)
		return
	}
	here, buffered, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = here.Close() }()
	if !p.trackConn(here) {
		return
	}
	defer p.untrackConn(here)
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(there, buffered) // including data sent before the hijack
		_ = there.Close()
	})
	_, _ = io.Copy(here, there)
	_ = here.Close()
	up.Wait()
}

// dial connects to an address that pages may reach, and records a failure.
func (p *proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := p.dialer.DialContext(ctx, network, address)
	if err == nil {
		counted := &countedConn{Conn: conn, proxy: p}
		if p.trackConn(counted) {
			return counted, nil
		}
		err = errors.Join(net.ErrClosed, conn.Close())
	}
	p.recordFailure(guard.Reason(err))
	return nil, err
}

func (p *proxy) recordFailure(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && !errors.Is(p.lastErr, guard.ErrAddress) && !errors.Is(p.lastErr, guard.ErrHost) {
		p.lastErr = err
	}
}

func (p *proxy) trackConn(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) untrackConn(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// countReceived subtracts n received bytes from bytesLeft. It returns errTraffic if too few are left.
func (p *proxy) countReceived(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytesLeft -= int64(n); p.bytesLeft < 0 {
		p.lastErr = errTraffic
		return errTraffic
	}
	return nil
}

// countedConn is a connection to a server. It counts the received bytes.
type countedConn struct {
	net.Conn
	proxy *proxy
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if over := c.proxy.countReceived(n); over != nil {
		return 0, over
	}
	return n, err
}

func (c *countedConn) Close() error {
	c.proxy.untrackConn(c)
	return c.Conn.Close()
}
