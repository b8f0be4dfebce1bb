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
	// attempts is how often a request is sent at most.
	attempts = 4
	// maxPause is the longest pause that is waited for before the next attempt; where
	// Google asks for more, the model is told instead.
	maxPause = 8 * time.Second
	// maxBody bounds an answer in bytes.
	maxBody = 96 << 20
	// maxErrorBody bounds the body of an error.
	maxErrorBody = 64 << 10
)

// newTransport is the standard one with a bound on the wait for an answer.
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

// redirected sends every request to another host, and bounds the size of answers.
type redirected struct {
	target *url.URL // nil for none
	base   http.RoundTripper
}

func (t *redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.target != nil {
		req = req.Clone(req.Context())
		req.URL.Scheme, req.URL.Host, req.Host = t.target.Scheme, t.target.Host, ""
	}
	resp, err := t.base.RoundTrip(req)
	if err == nil {
		// The reader fails where the body is longer, so that nothing is taken for whole.
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxBody)
	}
	return resp, err
}

// retrying sends a request again where that cannot do anything twice: Google did
// not take it (429, 503, no connection), or doing it twice is doing it once.
type retrying struct {
	base   http.RoundTripper
	pause  time.Duration
	always bool // every request may be repeated
	now    func() time.Time
}

func (t *retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	pauses := retry.New(t.pause, maxPause)
	for attempt := 1; ; attempt++ {
		resp, err := t.base.RoundTrip(req)
		if attempt == attempts || !t.worthwhile(req, resp, err) {
			return resp, err
		}
		next, ok := rewound(req)
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

// worthwhile reports whether to send the request again. It may replace the body of an error.
func (t *retrying) worthwhile(req *http.Request, resp *http.Response, err error) bool {
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

// discard ends a body so that its connection can be used again.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, maxErrorBody)
	_ = body.Close()
}

// rewound is the request with its body from the beginning, if it has that.
func rewound(req *http.Request) (*http.Request, bool) {
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

// repeatable gives a request the means to be sent again. Methods of the library that
// can carry media leave them out. Files that are sent are bounded by [service.MaxFile].
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

// tokenSource yields the token of one account, but not the rejected one, if any.
type tokenSource func(ctx context.Context, rejected string) (string, error)

// authorized adds a token, and tries once more with a new one where it is not accepted.
type authorized struct {
	tokens tokenSource
	base   http.RoundTripper
	note   func(*http.Request, *http.Response) // of each request that was sent

	mu    sync.Mutex
	token string
}

func (t *authorized) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	defer func() { t.note(req, resp) }()
	token, err := t.current(req.Context(), "")
	if err != nil {
		return nil, err
	}
	if req, err = repeatable(req); err != nil {
		return nil, err
	}
	resp, err = t.base.RoundTrip(bearing(req, token))
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	next, ok := rewound(req)
	if !ok {
		return resp, nil
	}
	discard(resp.Body)
	if token, err = t.current(req.Context(), token); err != nil {
		return nil, err
	}
	return t.base.RoundTrip(bearing(next, token))
}

// current returns the token of this call, a new one if it is the rejected one.
func (t *authorized) current(ctx context.Context, rejected string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && t.token != rejected {
		return t.token, nil
	}
	var err error
	t.token, err = t.tokens(ctx, rejected)
	return t.token, err
}

func bearing(req *http.Request, token string) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return req
}
