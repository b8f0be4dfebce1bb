package google

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
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

// retryTransport repeats a request if that is safe: Google did not accept it (a rate limit, no
// connection), or it is idempotent. A 503 is no refusal: the server may have received the request
// (UNAVAILABLE in github.com/googleapis/googleapis, google/rpc/code.proto).
type retryTransport struct {
	base         http.RoundTripper
	pause        time.Duration
	alwaysRepeat bool // every request may be repeated
	now          func() time.Time
}

func (t *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	pauses := retry.New(t.pause, maxPause)
	uncertain := false // whether Google may have carried out an earlier attempt
	for attempt := 1; ; attempt++ {
		resp, err := t.base.RoundTrip(req)
		if uncertain && req.Method == http.MethodDelete && err == nil && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone) {
			discard(resp.Body)
			resp.Status, resp.StatusCode, resp.Body = "204 No Content", http.StatusNoContent, http.NoBody
		}
		if attempt == maxAttempts || !t.shouldRetry(req, resp, err) {
			return resp, err
		}
		next, ok := rewindBody(req)
		var asked time.Duration
		if resp != nil {
			asked, _ = retry.After(resp.Header, t.now())
		}
		wait := pauses.Next(asked)
		if deadline, has := req.Context().Deadline(); !ok || wait > maxPause || has && t.now().Add(wait).After(deadline) {
			return resp, err
		}
		if resp != nil {
			discard(resp.Body)
		}
		uncertain = uncertain || err != nil && !isDialError(err) || err == nil && resp.StatusCode >= http.StatusInternalServerError
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
		return req.Context().Err() == nil && (idempotent || isDialError(err))
	}
	switch code := resp.StatusCode; code {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return service.IsRateLimit(code, peekBody(resp))
	default:
		return idempotent && code >= http.StatusInternalServerError && code != http.StatusNotImplemented
	}
}

// isDialError reports whether an error means that there was no connection.
func isDialError(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
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
	onResponse func(req *http.Request, resp *http.Response, connected bool) // called once for each request

	mu    sync.Mutex
	token string
}

func (t *authTransport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	var connected atomic.Bool
	defer func() { t.onResponse(req, resp, connected.Load()) }()
	send := func(req *http.Request, token string) (*http.Response, error) {
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
		return t.base.RoundTrip(withBearer(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)), token))
	}
	token, err := t.currentToken(req.Context(), "")
	if err != nil {
		return nil, err
	}
	if req, err = makeRepeatable(req); err != nil {
		return nil, err
	}
	resp, err = send(req, token)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	next, ok := rewindBody(req)
	if !ok {
		return resp, nil
	}
	discard(resp.Body)
	connected.Store(false) // Google refused the request
	if token, err = t.currentToken(req.Context(), token); err != nil {
		return nil, err
	}
	return send(next, token)
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
