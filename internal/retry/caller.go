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
	http       atomic.Pointer[http.Client]
	ownsClient bool
	redact     func(string) string
	tap        Tap
}

// Tap returns a transport that observes the traffic of another.
type Tap func(next http.RoundTripper) http.RoundTripper

// NewCaller returns a caller that uses the given client or, if nil, a new one. It follows no redirects.
// redact masks secrets in errors.
func NewCaller(given *http.Client, redact func(string) string) *Caller {
	c := &Caller{ownsClient: given == nil, redact: redact}
	hc := http.Client{Transport: newTransport()}
	if given != nil {
		hc = *given
	}
	// The address in a redirect may contain a secret.
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http.Store(&hc)
	return c
}

// SetTap sets the tap; nil means none. Call it before the first request.
func (c *Caller) SetTap(tap Tap) {
	if c.tap = tap; tap != nil {
		hc := *c.http.Load()
		hc.Transport = tap(cmp.Or(hc.Transport, http.DefaultTransport))
		c.http.Store(&hc)
	}
}

// newTransport returns a transport that detects dead connections, and closes idle ones before the
// server does: if a request is sent on a connection that the server has just closed, its outcome is
// unknown.
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
	if c.ownsClient {
		c.http.Load().CloseIdleConnections()
	}
}

// RenewConnections makes later calls use new connections, unless they are shared. Running calls keep
// theirs, which are closed afterwards.
func (c *Caller) RenewConnections() {
	if !c.ownsClient {
		return
	}
	hc := *c.http.Load()
	if hc.Transport = newTransport(); c.tap != nil {
		hc.Transport = c.tap(hc.Transport)
	}
	c.http.Swap(&hc).CloseIdleConnections()
}

// CleanError removes the address from an error of net/http. If the error still contains a secret, it
// returns an error with only the redacted text.
func (c *Caller) CleanError(err error) error {
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

// CopyBody copies a body of at most limit bytes to w. For a longer one it returns tooLong.
func (c *Caller) CopyBody(w io.Writer, resp *http.Response, limit int64, tooLong error) error {
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
		return fmt.Errorf("after %d bytes: %w", n, c.CleanError(err))
	}
	return nil
}

// ClientFunc is a client that consists of one function.
type ClientFunc func(*http.Request) (*http.Response, error)

// Do calls f(req).
func (f ClientFunc) Do(req *http.Request) (*http.Response, error) { return f(req) }

// LimitBody returns a body that ends after limit bytes.
func LimitBody(body io.ReadCloser, limit int64) io.ReadCloser {
	return limitedBody{io.LimitReader(body, limit), body}
}

type limitedBody struct {
	io.Reader
	io.Closer
}
