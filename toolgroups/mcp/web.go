package mcp

import (
	"context"
	"errors"
	"fmt"
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
	endpoint string
	client   *http.Client
	base     *http.Transport
	private  []netip.Prefix // permitted private addresses
	max      int
	posted   *atomic.Int32 // the status of the last response to a POST
	fault    *messageFault
}

// newWeb makes the client of one server. It connects only to the host of the configured address,
// so that neither a redirect nor the headers can leave it.
func newWeb(cfg Server, headers map[string]string, family Config) (*httpDialer, error) {
	origin, err := guard.ParseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	private := family.AllowPrivate
	if !cfg.added {
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
	posted, wrong := &atomic.Int32{}, &messageFault{}
	return &httpDialer{
		posted: posted, fault: wrong,
		endpoint: cfg.URL,
		base:     base,
		private:  private,
		max:      family.MaxMessage,
		client: &http.Client{
			Transport: headerTransport{base: base, origin: origin, headers: headers, max: int64(family.MaxMessage), posted: posted, fault: wrong},
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

// privateRanges returns the private addresses that a host may have. A host that is such an
// address, or whose name is only valid internally, was chosen by the operator.
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
	return out
}

// open implements dialer. It contacts nothing before the transport is used.
func (d *httpDialer) open(context.Context) (sdk.Transport, func() error, error) {
	return &sdk.StreamableClientTransport{
		Endpoint:     d.endpoint,
		HTTPClient:   d.client,
		MaxRetries:   2,
		MaxEventSize: d.max,
	}, d.trackFault(), nil
}

// trackFault begins a connection, and returns a function that returns the malformed message that ended
// it.
func (d *httpDialer) trackFault() func() error {
	d.fault.last.Store(nil)
	return d.fault.why
}

// mayBeOlder reports whether the last response is that of a server with HTTP+SSE, as before
// version 2025-03-26.
func (d *httpDialer) mayBeOlder() bool {
	return slices.Contains([]int32{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}, d.posted.Load())
}

// sseDialer reaches servers that use HTTP+SSE: responses come in one stream of events, which names
// the address for requests.
type sseDialer struct{ *httpDialer }

// open implements dialer.
func (d sseDialer) open(context.Context) (sdk.Transport, func() error, error) {
	return longTransport{&sdk.SSEClientTransport{Endpoint: d.endpoint, HTTPClient: d.client, MaxEventSize: d.max}}, d.trackFault(), nil
}

// longTransport is a transport whose connection outlives the context that it is made with, unlike the
// library's.
type longTransport struct{ sdk.Transport }

func (s longTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	conn, err := s.Transport.Connect(open)
	if err != nil {
		end()
		return nil, err
	}
	if !stop() {
		_ = conn.Close() // it has ended with its context
		return nil, ctx.Err()
	}
	return endingConn{conn, end}, nil
}

// endingConn is a connection that also ends its context.
type endingConn struct {
	sdk.Connection
	end context.CancelFunc
}

func (c endingConn) Close() error {
	defer c.end()
	return c.Connection.Close()
}

// rest closes idle connections.
func (d *httpDialer) rest() { d.base.CloseIdleConnections() }

// headerTransport adds the headers, and bounds responses that are read as a whole. A stream is bounded
// event by event by its reader.
type headerTransport struct {
	base    http.RoundTripper
	origin  *url.URL
	headers map[string]string
	max     int64
	posted  *atomic.Int32
	fault   *messageFault
}

func (c headerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !sameOrigin(req.URL, c.origin) {
		return nil, fmt.Errorf("%w: it is not that of the server", guard.ErrURL)
	}
	req = req.Clone(req.Context())
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	resp, err := c.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if req.Method == http.MethodPost {
		c.posted.Store(int32(resp.StatusCode)) //nolint:gosec // three digits
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	stream := err == nil && kind == "text/event-stream"
	if !stream {
		resp.Body = http.MaxBytesReader(nil, resp.Body, c.max)
	}
	resp.Body = &countedBody{ReadCloser: resp.Body, density: valueCounter{lines: stream}, fault: c.fault}
	return resp, nil
}
