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
	// maxAttempts bounds the attempts at a request.
	maxAttempts = 4
	// maxPause bounds the wait before the next attempt. If Google asks for a longer one, the model
	// gets the error instead.
	maxPause = 8 * time.Second
	// maxBody bounds a response in bytes.
	maxBody = 96 << 20
	// maxErrorBody bounds the body of an error response, in bytes.
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
		// The reader fails if the body is longer, so that a truncated body is not taken for complete.
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxBody)
	}
	return resp, err
}

// retryTransport repeats a request if that is safe: Google did not accept it (429, 503, no
// connection), or it is idempotent.
type retryTransport struct {
	base         http.RoundTripper
	pause        time.Duration
	alwaysRepeat bool // every request may be repeated
	now          func() time.Time
}

func (t *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	pauses := retry.New(t.pause, maxPause)
	for attempt := 1; ; attempt++ {
		resp, err := t.base.RoundTrip(req)
		if attempt == maxAttempts || !t.shouldRetry(req, resp, err) {
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

// shouldRetry reports whether to repeat the request. It may replace the body of an error response.
func (t *retryTransport) shouldRetry(req *http.Request, resp *http.Response, err error) bool {
	idempotent := t.alwaysRepeat || req.Method == http.MethodGet || req.Method == http.MethodHead ||
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
		return service.IsRateLimit(code, peekBody(resp))
	default:
		return idempotent && code >= http.StatusInternalServerError && code != http.StatusNotImplemented
	}
}

// peekBody reads the body of an error response and puts it back.
func peekBody(resp *http.Response) []byte {
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

// makeRepeatable makes the body of a request repeatable, which the library does not do for methods
// that can carry media. Uploads are bounded by [service.MaxFile].
func makeRepeatable(req *http.Request) (*http.Request, error) {
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

// authTransport adds a token to requests, and repeats a request once with a new token after a 401.
type authTransport struct {
	tokens     tokenSource
	base       http.RoundTripper
	onResponse func(*http.Request, *http.Response) // called for each request sent

	mu    sync.Mutex
	token string
}

func (t *authTransport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	defer func() { t.onResponse(req, resp) }()
	token, err := t.currentToken(req.Context(), "")
	if err != nil {
		return nil, err
	}
	if req, err = makeRepeatable(req); err != nil {
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
	if token, err = t.currentToken(req.Context(), token); err != nil {
		return nil, err
	}
	return t.base.RoundTrip(withBearer(next, token))
}

// currentToken returns the token of this call, or a new token if that one was rejected.
func (t *authTransport) currentToken(ctx context.Context, rejected string) (string, error) {
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
