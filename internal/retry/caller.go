package retry

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// Caller makes HTTP requests.
type Caller struct {
	http   atomic.Pointer[http.Client]
	own    bool
	redact func(string) string
	tap    Tap
}

// Tap sees the traffic between a client and its service.
type Tap interface {
	// Transport returns a transport that wraps next.
	Transport(next http.RoundTripper) http.RoundTripper
	// Frame gets a socket's message, received or sent.
	Frame(sent bool, data []byte)
}

// NewCaller returns a caller that uses the given client, or a new one. redact masks errors.
func NewCaller(given *http.Client, redact func(string) string) *Caller {
	c := &Caller{own: given == nil, redact: redact}
	hc := http.Client{Transport: newTransport()}
	if given != nil {
		hc = *given
	}
	// The address in a redirect may contain a secret.
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http.Store(&hc)
	return c
}

// Watch sets the tap; nil is none. Call it before the first request.
func (c *Caller) Watch(tap Tap) {
	if c.tap = tap; tap != nil {
		hc := *c.http.Load()
		hc.Transport = tap.Transport(cmp.Or(hc.Transport, http.DefaultTransport))
		c.http.Store(&hc)
	}
}

// Frame passes a socket's message to the tap.
func (c *Caller) Frame(sent bool, data []byte) {
	if c.tap != nil {
		c.tap.Frame(sent, data)
	}
}

// newTransport returns a transport that detects dead connections, and closes idle ones before
// the server does: a send on a connection that the other side has just closed has an unknown
// outcome.
func newTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.IdleConnTimeout = 30 * time.Second
	t.MaxIdleConnsPerHost = 32
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return t
}

// Do makes a request.
func (c *Caller) Do(req *http.Request) (*http.Response, error) { return c.http.Load().Do(req) }

// Close closes idle connections unless they are shared.
func (c *Caller) Close() {
	if c.own {
		c.http.Load().CloseIdleConnections()
	}
}

// Renew makes later calls use new connections, unless they are shared. Running calls keep
// theirs, which are closed afterwards.
func (c *Caller) Renew() {
	if !c.own {
		return
	}
	hc := *c.http.Load()
	if hc.Transport = newTransport(); c.tap != nil {
		hc.Transport = c.tap.Transport(hc.Transport)
	}
	c.http.Swap(&hc).CloseIdleConnections()
}

// Clean removes the address from an error of net/http, and everything but the text if an error
// still contains a secret.
func (c *Caller) Clean(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if text := e.Error(); c.redact(text) != text {
			return errors.New(c.redact(err.Error()))
		}
	}
	return err
}

// Save copies a body of at most limit bytes to w. For a longer one it returns tooLong.
func (c *Caller) Save(w io.Writer, resp *http.Response, limit int64, tooLong error) error {
	if resp.ContentLength > limit {
		return tooLong
	}
	n, err := io.Copy(w, io.LimitReader(resp.Body, limit))
	if err == nil {
		var more [1]byte
		if _, err = io.ReadFull(resp.Body, more[:]); err == nil {
			return tooLong
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("after %d bytes: %w", n, c.Clean(err))
	}
	return nil
}

// Func is a client that is one function.
type Func func(*http.Request) (*http.Response, error)

// Do makes the request.
func (f Func) Do(req *http.Request) (*http.Response, error) { return f(req) }

// Bounded returns a body that ends after limit bytes.
func Bounded(body io.ReadCloser, limit int64) io.ReadCloser {
	return bounded{io.LimitReader(body, limit), body}
}

type bounded struct {
	io.Reader
	io.Closer
}
