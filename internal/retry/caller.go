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

// Caller makes requests.
type Caller struct {
	http   atomic.Pointer[http.Client]
	own    bool
	redact func(string) string
	tap    Tap
}

// Tap sees all that a client and its service exchange.
type Tap interface {
	// Transport returns what makes requests in the place of next.
	Transport(next http.RoundTripper) http.RoundTripper
	// Frame is shown what came over a socket, or was sent.
	Frame(sent bool, data []byte)
}

// NewCaller returns one that uses the client given, or one of its own. Redact masks errors.
func NewCaller(given *http.Client, redact func(string) string) *Caller {
	c := &Caller{own: given == nil, redact: redact}
	hc := http.Client{Transport: newTransport()}
	if given != nil {
		hc = *given
	}
	// The address that a redirect tells the next server may hold a secret.
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http.Store(&hc)
	return c
}

// Watch has a tap see everything from now on; nil is none. It comes before the first request.
func (c *Caller) Watch(tap Tap) {
	if c.tap = tap; tap != nil {
		hc := *c.http.Load()
		hc.Transport = tap.Transport(cmp.Or(hc.Transport, http.DefaultTransport))
		c.http.Store(&hc)
	}
}

// Frame shows the tap what came over a socket, or was sent.
func (c *Caller) Frame(sent bool, data []byte) {
	if c.tap != nil {
		c.tap.Frame(sent, data)
	}
}

// newTransport notices dead connections by itself, and gives idle ones up before
// the server does: a send on a connection that the other side has just closed ends
// with an unknown outcome.
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

// Close gives up idle connections, where they are not shared.
func (c *Caller) Close() {
	if c.own {
		c.http.Load().CloseIdleConnections()
	}
}

// Renew lets the calls from now on use new connections, where they are not shared.
// Calls under way keep theirs, which are closed behind them.
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

// Clean drops the address from an error of net/http, and all but the words of an
// error that still tells a secret.
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

// Save copies a body of at most so many bytes to w. A longer one is the error tooLong.
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

// Func is a client of one request.
type Func func(*http.Request) (*http.Response, error)

// Do makes the request.
func (f Func) Do(req *http.Request) (*http.Response, error) { return f(req) }

// Bounded returns no more than so many bytes of a body.
func Bounded(body io.ReadCloser, limit int64) io.ReadCloser {
	return bounded{io.LimitReader(body, limit), body}
}

type bounded struct {
	io.Reader
	io.Closer
}
