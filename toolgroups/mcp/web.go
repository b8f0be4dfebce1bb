package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/internal/guard"
)

// maxRedirects bounds the redirects within the host of a server.
const maxRedirects = 5

// httpDialer reaches servers that use streamable HTTP.
type httpDialer struct {
	endpoint   string
	client     *http.Client
	base       *http.Transport
	private    []netip.Prefix // permitted private addresses
	maxMessage int
	fault      *messageFault
	log        *slog.Logger
}

// newHTTPDialer makes the dialer for one server. It connects only to the host in the configured
// address: it follows no redirects to other hosts and sends them no headers.
func newHTTPDialer(cfg Server, headers map[string]string, family Config) (*httpDialer, error) {
	origin, err := guard.ParseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	private := family.AllowPrivate
	if !cfg.addedInChat {
		private = privateRanges(origin.Hostname(), cfg.AllowPrivate)
	}
	base := &http.Transport{
		DialContext:            guard.NewDialer(guard.Config{AllowPrivate: private, Resolver: family.Resolver}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    guard.DialTimeout,
		IdleConnTimeout:        time.Minute,
		MaxIdleConns:           4,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &httpDialer{
		fault:      &messageFault{},
		log:        family.Logger,
		endpoint:   cfg.URL,
		base:       base,
		private:    private,
		maxMessage: family.MaxMessage,
		client: &http.Client{
			Transport: headerTransport{base: base, origin: origin, headers: headers, maxBody: int64(family.MaxMessage)},
			CheckRedirect: func(req *http.Request, via []*http.Request) error {
				if len(via) > maxRedirects {
					return guard.ErrRedirects
				}
				if !sameOrigin(req.URL, origin) {
					return errors.New("it redirects to another host, which is not followed: configure that address")
				}
				return nil
			},
		},
	}, nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// privateRanges returns the private addresses, and those of this machine, that a host may have. An operator
// who configures such an address, or a name that is only valid internally, has chosen a private host.
func privateRanges(host string, allowed bool) []netip.Prefix {
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap().WithZone("")
		return []netip.Prefix{netip.PrefixFrom(addr, addr.BitLen())}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	inner := !strings.Contains(host, ".")
	for _, suffix := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		inner = inner || strings.HasSuffix(host, suffix)
	}
	if !inner && !allowed {
		return nil
	}
	var out []netip.Prefix
	for _, p := range []string{
		"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7",
	} {
		out = append(out, netip.MustParsePrefix(p))
	}
	own, _ := guard.OwnAddresses() // without them, the dialer names the error
	return append(out, own...)
}

// open implements dialer. It contacts the server only when the transport is used.
func (d *httpDialer) open(ctx context.Context) (sdk.Transport, func() error, error) {
	client := d.clientUntil(ctx)
	client.Transport = beginEvents(client.Transport)
	return &sdk.StreamableClientTransport{
		Endpoint:     d.endpoint,
		HTTPClient:   client,
		MaxEventSize: packedSize * d.maxMessage,
	}, d.trackFault(), nil
}

// packedSize is how many times larger a message can become when a part of it becomes a text.
const packedSize = 4

// trackFault begins a connection, and returns a function that says why a message that ended the
// connection was refused.
func (d *httpDialer) trackFault() func() error {
	d.fault.last.Store(nil)
	return d.fault.cause
}

// postStatus is the status of the response to the last POST that was made with a context:
// statusUnsent before the request, statusUnanswered until there is a response.
type postStatus struct {
	atomic.Int32
	refusal atomic.Pointer[reportedError] // the response refuses access
}

const (
	statusUnsent     = 0
	statusUnanswered = 1
)

// postStatusKey is the context key of a [postStatus].
type postStatusKey struct{}

// withPostStatus returns a context that records the status of its requests.
func withPostStatus(ctx context.Context) (context.Context, *postStatus) {
	p := &postStatus{}
	return context.WithValue(ctx, postStatusKey{}, p), p
}

// mayUseSSE reports whether the response may come from a server with HTTP+SSE, the transport before
// version 2025-03-26.
func (p *postStatus) mayUseSSE() bool {
	return slices.Contains([]int32{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}, p.Load())
}

// sseDialer reaches servers that use HTTP+SSE: responses arrive in one stream of events, which names
// the address for requests.
type sseDialer struct{ *httpDialer }

// open implements dialer.
func (d sseDialer) open(ctx context.Context) (sdk.Transport, func() error, error) {
	return &sdk.SSEClientTransport{Endpoint: d.endpoint, HTTPClient: d.clientUntil(ctx), MaxEventSize: packedSize * d.maxMessage}, d.trackFault(), nil
}

// clientUntil returns a client for one connection, whose requests end with ctx. The library makes requests
// that nothing else ends: that for notifications, and those with answers to the server.
func (d *httpDialer) clientUntil(ctx context.Context) *http.Client {
	client := *d.client
	client.Transport = (&messages{log: d.log}).transport(roundTripper(func(req *http.Request) (*http.Response, error) {
		bound, cancel := context.WithCancel(req.Context())
		stop := context.AfterFunc(ctx, cancel)
		end := func() { stop(); cancel() }
		resp, err := d.client.Transport.RoundTrip(req.WithContext(bound))
		if err != nil {
			end()
			return nil, err
		}
		resp.Body = boundBody{resp.Body, end}
		return resp, nil
	}), d.maxMessage, d.fault)
	return &client
}

// ownEvent begins the ids of the events that beginEvents adds.
const ownEvent = "oneclaw-"

// beginEvents returns a transport that begins the server's stream of events with an event that has an
// id and nothing else. The library ends the connection, with all calls, if streams end three times
// without a new id. Most servers send no ids, and many proxies end idle streams after a minute.
func beginEvents(next http.RoundTripper) http.RoundTripper {
	const last = "Last-Event-ID"
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		again := req.Header.Get(last) != ""
		if strings.HasPrefix(req.Header.Get(last), ownEvent) {
			req = req.Clone(req.Context())
			req.Header.Del(last)
		}
		if req.Method != http.MethodGet {
			return next.RoundTrip(req)
		}
		resp, err := awaitStream(next, req, again)
		if err != nil || req.Header.Get(last) != "" || !isEventStream(resp) {
			return resp, err
		}
		resp.Body = prefixed([]byte("id: "+ownEvent+rand.Text()+"\n\n"), resp.Body)
		return resp, nil
	})
}

// streamTime bounds the wait for the headers of the server's stream of events. Some servers send them with the
// first event, and the library makes no request before it has them.
const streamTime = time.Second

// awaitStream makes a request for a stream of events. If its response is late, the stream begins without it, and
// stays empty if there is none. A goroutine ends with the body of the response. The library takes a first stream that is
// refused for one that the server does not have, but if one is refused that goes on again, the session is over: that is
// said however late it comes, as nothing waits for it.
func awaitStream(next http.RoundTripper, req *http.Request, again bool) (*http.Response, error) {
	type answer struct {
		resp *http.Response
		err  error
	}
	ctx, cancel := context.WithCancel(req.Context())
	req = req.WithContext(ctx)
	answers := make(chan answer, 1)
	go func() {
		resp, err := next.RoundTrip(req) //nolint:bodyclose // closed by who takes it
		answers <- answer{resp, err}
	}()
	timer := time.NewTimer(streamTime)
	defer timer.Stop()
	select {
	case a := <-answers:
		if a.err != nil {
			cancel()
			return nil, a.err
		}
		a.resp.Body = boundBody{a.resp.Body, cancel}
		return a.resp, nil
	case <-timer.C:
	}
	if again {
		a := <-answers
		if a.err == nil && (a.resp.StatusCode == http.StatusUnauthorized || a.resp.StatusCode == http.StatusNotFound) {
			a.resp.Body = boundBody{a.resp.Body, cancel}
			return a.resp, nil
		}
		answers <- a
	}
	events, late := io.Pipe()
	go func() {
		a := <-answers
		if a.err == nil {
			isStream := a.resp.StatusCode == http.StatusOK && isEventStream(a.resp)
			if isStream {
				_, a.err = io.Copy(late, a.resp.Body)
			}
			_ = a.resp.Body.Close() // its connection is free again
			if !isStream {
				<-ctx.Done()
			}
		}
		_ = late.CloseWithError(a.err) // nil ends the stream
	}()
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: boundBody{events, cancel}, Request: req,
	}, nil
}

func isEventStream(resp *http.Response) bool { return isMediaType(resp, "text/event-stream") }

func isMediaType(resp *http.Response, want string) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && kind == want
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// boundBody is a response body whose Close releases the context of the request.
type boundBody struct {
	io.ReadCloser
	end func()
}

func (b boundBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// closeIdle closes idle connections.
func (d *httpDialer) closeIdle() { d.base.CloseIdleConnections() }

// headerTransport adds the headers, and bounds responses that are read as a whole. The reader of a
// stream bounds its events.
type headerTransport struct {
	base    http.RoundTripper
	origin  *url.URL
	headers map[string]string
	maxBody int64
}

func (c headerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !sameOrigin(req.URL, c.origin) {
		return nil, fmt.Errorf("%w: it is not the address of the server", guard.ErrURL)
	}
	req = req.Clone(req.Context())
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	status, _ := req.Context().Value(postStatusKey{}).(*postStatus)
	if status == nil || req.Method != http.MethodPost {
		status = &postStatus{}
	}
	status.Store(statusUnanswered)
	status.refusal.Store(nil)
	resp, err := c.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if !isEventStream(resp) {
		resp.Body = http.MaxBytesReader(nil, resp.Body, c.maxBody)
	}
	switch resp.StatusCode {
	case http.StatusBadRequest:
		// Many servers, after the examples of the TypeScript library, answer so that there is no valid session.
		if req.Header.Get("Mcp-Session-Id") != "" && bytes.Contains(bytes.ToLower(peek(resp)), []byte("session")) {
			resp.StatusCode = http.StatusNotFound
		}
	case http.StatusUnauthorized:
		status.refusal.Store(refusal(resp, "it refuses access (401 Unauthorized): its key is missing or wrong"))
	case http.StatusForbidden:
		status.refusal.Store(refusal(resp, "it refuses access (403 Forbidden)"))
	}
	status.Store(int32(resp.StatusCode)) //nolint:gosec // three digits
	return resp, nil
}

// refusal returns an error with what a response says beside it, unless that is a page.
func refusal(resp *http.Response, text string) *reportedError {
	refused := &reportedError{error: errors.New(text)}
	if isMediaType(resp, "text/html") {
		return refused
	}
	body := peek(resp)
	said := objectFields(body)
	// As JSON-RPC, OAuth and most services have it.
	refused.output = cmp.Or(stringOf(objectFields(said["error"])["message"]), stringOf(said["error_description"]),
		stringOf(said["message"]), stringOf(said["error"]), string(body))
	return refused
}

// peek returns the beginning of a response, which can still be read.
func peek(resp *http.Response) []byte {
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	resp.Body = prefixed(head, resp.Body)
	return head
}

// prefixed returns a body that begins with more bytes.
func prefixed(head []byte, body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), body), body}
}
