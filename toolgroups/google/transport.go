package google

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"oneclaw/internal/retry"
	"oneclaw/toolgroups/google/service"
)

const (
	// attempts bounds the tries of a request.
	attempts = 4
	// maxPause bounds the wait before the next try; if Google asks for more, the model is told
	// instead.
	maxPause = 8 * time.Second
	// maxBody bounds a response in bytes.
	maxBody = 96 << 20
	// maxErrorBody bounds the body of an error.
	maxErrorBody = 64 << 10
)

// newTransport returns the standard transport with a bounded wait for responses.
func newTransport() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   service.Parallel,
		IdleConnTimeout:       30 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
	}
}

// hostRewriter sends every request to another host, and bounds the size of responses.
type hostRewriter struct {
	target *url.URL // nil for none
	base   http.RoundTripper
}

func (t *hostRewriter) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.target != nil {
		req = req.Clone(req.Context())
		req.URL.Scheme, req.URL.Host, req.Host = t.target.Scheme, t.target.Host, ""
	}
	resp, err := t.base.RoundTrip(req)
	if err == nil {
		// The reader fails if the body is longer, so that a cut one is not taken for complete.
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxBody)
	}
	return resp, err
}

// retryTransport repeats a request if that is safe: Google did not accept it (429, 503, no
// connection), or it is idempotent.
type retryTransport struct {
	base   http.RoundTripper
	pause  time.Duration
	always bool // every request may be repeated
	now    func() time.Time
}

func (t *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	pauses := retry.New(t.pause, maxPause)
	for attempt := 1; ; attempt++ {
		resp, err := t.base.RoundTrip(req)
		if attempt == attempts || !t.worthwhile(req, resp, err) {
			return resp, err
		}
		next, ok := rewindBody(req)
		var asked time.Duration
		if resp != nil {
			asked, _ = service.RetryAfter(resp.Header, t.now())
		}
		wait := pauses.Next(asked)
		if deadline, has := req.Context().Deadline(); !ok || wait > maxPause || has && t.now().Add(wait).After(deadline) {
			return resp, err
		}
		if resp != nil {
			discard(resp.Body)
		}
		if err := retry.Wait(req.Context(), wait); err != nil {
			return nil, err
		}
		req = next
	}
}

// worthwhile reports whether to repeat the request. It may replace the body of an error.
func (t *retryTransport) worthwhile(req *http.Request, resp *http.Response, err error) bool {
	idempotent := t.always || req.Method == http.MethodGet || req.Method == http.MethodHead ||
		req.Method == http.MethodPut || req.Method == http.MethodDelete
	if err != nil {
		var dial *net.OpError
		refused := errors.As(err, &dial) && dial.Op == "dial"
		return req.Context().Err() == nil && (idempotent || refused)
	}
	switch code := resp.StatusCode; code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusForbidden:
		return service.LimitsRate(code, peek(resp))
	default:
		return idempotent && code >= http.StatusInternalServerError && code != http.StatusNotImplemented
	}
}

// peek reads the body of an error and puts it back.
func peek(resp *http.Response) []byte {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	discard(resp.Body)
	if err != nil {
		data = nil
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return data
}

// discard drains and closes a body so that its connection can be reused.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, maxErrorBody)
	_ = body.Close()
}

// rewindBody returns the request with its body from the beginning; false if that is impossible.
func rewindBody(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	next := req.Clone(req.Context())
	next.Body = body
	return next, true
}

// repeatable makes the body of a request repeatable: methods of the library that can carry media
// do not. Uploads are bounded by [service.MaxFile].
func repeatable(req *http.Request) (*http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody || req.GetBody != nil {
		return req, nil
	}
	data, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	out.Body, err = out.GetBody()
	return out, err
}

// tokenSource returns a token of one account other than the rejected one.
type tokenSource func(ctx context.Context, rejected string) (string, error)

// authTransport adds a token, and tries once more with a new one after a 401.
type authTransport struct {
	tokens tokenSource
	base   http.RoundTripper
	note   func(*http.Request, *http.Response) // called for each request sent

	mu    sync.Mutex
	token string
}

func (t *authTransport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	defer func() { t.note(req, resp) }()
	token, err := t.current(req.Context(), "")
	if err != nil {
		return nil, err
	}
	if req, err = repeatable(req); err != nil {
		return nil, err
	}
	resp, err = t.base.RoundTrip(withBearer(req, token))
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	next, ok := rewindBody(req)
	if !ok {
		return resp, nil
	}
	discard(resp.Body)
	if token, err = t.current(req.Context(), token); err != nil {
		return nil, err
	}
	return t.base.RoundTrip(withBearer(next, token))
}

// current returns the token of this call, or a new one if that is the rejected one.
func (t *authTransport) current(ctx context.Context, rejected string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && t.token != rejected {
		return t.token, nil
	}
	var err error
	t.token, err = t.tokens(ctx, rejected)
	return t.token, err
}

func withBearer(req *http.Request, token string) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return req
}
