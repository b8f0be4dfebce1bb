package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/internal/redact"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// served puts a server behind HTTP.
func served(t testing.TB, f *fake, wrap func(http.Handler) http.Handler, options *sdk.StreamableHTTPOptions) (*httptest.Server, mcp.Server) {
	t.Helper()
	var h http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return f.Server }, options)
	if wrap != nil {
		h = wrap(h)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	t.Cleanup(f.endSessions)
	return srv, mcp.Server{URL: srv.URL + "/mcp"}
}

func TestHTTPServers(t *testing.T) {
	for name, options := range map[string]*sdk.StreamableHTTPOptions{
		"stream": nil, "json": {JSONResponse: true}, "stateless": {Stateless: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := served(t, newFake(), nil, options)
			c := discovered(t, mcp.Config{}, s)
			if got := call(t, c, "x_echo", map[string]any{"text": "hi"}); got != `{"text":"hi"}` {
				t.Errorf("got %q", got)
			}
			fails(t, c, "x_broken", toolgroups.CodeExecution, "no such city")
			must(t, c.Close())
		})
	}
}

func TestHTTPListChanges(t *testing.T) {
	changes := make(chan struct{}, 10)
	_, s := served(t, newFake(), nil, nil)
	c := discovered(t, mcp.Config{OnChange: func() { changes <- struct{}{} }}, s)
	<-changes
	call(t, c, "x_grow", nil)
	<-changes
	call(t, c, "x_grown", nil)
	must(t, c.Close())
}

func TestHTTPCancellationReachesTheServer(t *testing.T) {
	f := newFake()
	_, s := served(t, f, nil, nil)
	c := discovered(t, mcp.Config{}, s)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-f.hangs; cancel() }()
	if _, fault := run(t, ctx, c, "x_hang", nil, ""); fault == nil || fault.Code != toolgroups.CodeCancelled {
		t.Errorf("the stopped call: %+v", fault)
	}
	<-f.cancelled
	must(t, c.Close())
}

// A server may answer the request for its stream only when it has an event, or refuse it late. Calls do not wait for
// that, and may be answered there (@ivotoby/openapi-mcp-server 1.16.1 over HTTP).
func TestCallsDoNotWaitForTheStreamOfTheServer(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/json": "in the response", "/stream": "in the stream"} {
		calls := make(chan string, 1)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var q request
			_ = json.Unmarshal(body, &q)
			id, _ := json.Marshal(q.ID)
			switch {
			case r.Method == http.MethodGet:
				select {
				case id := <-calls:
					if path == "/json" {
						w.WriteHeader(http.StatusMethodNotAllowed)
						return
					}
					events(w)
					_, _ = fmt.Fprintf(w, "data: %s\n\n", answer(id, "in the stream"))
				case <-r.Context().Done():
				}
			case q.Method == "tools/call" && path == "/stream":
				w.WriteHeader(http.StatusAccepted)
				calls <- string(id)
			case q.Method == "tools/call":
				calls <- string(id)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer(string(id), "in the response"))
			default:
				r.Body, r.URL.Path = io.NopCloser(bytes.NewReader(body)), "/json"
				script{}.ServeHTTP(w, r)
			}
		}))
		t.Cleanup(web.Close)
		c := discovered(t, mcp.Config{}, mcp.Server{URL: web.URL + path})
		if got := call(t, c, "x_t", nil); got != want {
			t.Errorf("%s: %q", path, got)
		}
		must(t, c.Close())
	}
}

// closing is a body that says when it is closed.
type closing struct {
	io.Reader
	closed chan struct{}
}

func (c closing) Close() error {
	close(c.closed)
	return nil
}

// A late refusal of the server's stream holds no connection. It ends the session if the stream was to go on.
func TestALateRefusalOfTheStream(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		after        string // the event that the stream goes on behind
		status, want int
	}{
		{"", http.StatusMethodNotAllowed, http.StatusOK},
		{"", http.StatusNotFound, http.StatusOK}, // as the library takes an early one
		{"7", http.StatusMethodNotAllowed, http.StatusOK},
		{"7", http.StatusGatewayTimeout, http.StatusOK}, // a proxy's
		{"7", http.StatusNotFound, http.StatusNotFound},
		{"7", http.StatusUnauthorized, http.StatusUnauthorized},
		{"oneclaw-x", http.StatusNotFound, http.StatusNotFound},
	} {
		t.Run(fmt.Sprintf("%d behind %q", c.status, c.after), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body := closing{strings.NewReader("no"), make(chan struct{})}
				transport := mcp.BeginEvents(func(*http.Request) (*http.Response, error) {
					<-time.After(time.Minute)
					return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: body}, nil
				})
				req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://mcp.example.com/", nil)
				if c.after != "" {
					req.Header.Set("Last-Event-ID", c.after)
				}
				resp, err := transport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != c.want {
					t.Errorf("the library gets %d, want %d", resp.StatusCode, c.want)
				}
				if c.want == http.StatusOK {
					<-body.closed // while the stream is open
				}
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Who administers a server is told what it says when it refuses access, without the secrets in that.
func TestRefusalsOfAccessAreSaid(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"Bring your key.": ": Bring your key.",
		"":                "",
		`{"jsonrpc":"2.0","error":{"code":-32001,"message":"Bring your key."},"id":null}`: ": Bring your key.",
		`{"error":"invalid_token","error_description":"Your key has expired."}`:           ": Your key has expired.",
		`{"message":"The key of-the-hall-1234 is old."}`:                                  ": The key •••• is old.",
		"<html><body>401</body></html>":                                                   "",
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if strings.HasPrefix(body, "<") {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
			}
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, body)
		}))
		s := mcp.Server{URL: web.URL, Headers: map[string]redact.Secret{"X-Key": "of-the-hall-1234"}}
		c := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": s}})
		if got := c.Probe(t.Context())[0].Problem; got != "it refuses access (403 Forbidden)"+want {
			t.Errorf("%s: %q", body, got)
		}
		_, fault := run(t, t.Context(), c, "x_connect", nil, "")
		if fault == nil || !strings.Contains(fault.Message, "it refuses access (403 Forbidden); next try") {
			t.Errorf("%s: the model is told %v", body, fault)
		}
		web.Close()
	}
}

func TestHeadersAreSentAndNotShown(t *testing.T) {
	t.Setenv("HEADER_TOKEN", "very-secret-token")
	var l logs
	refuse := atomic.Bool{}
	srv, s := served(t, newFake(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refuse.Load() || r.Header.Get("Authorization") != "Bearer very-secret-token" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil)
	s.URL += "?api_key=query-secret"
	s.Headers = map[string]redact.Secret{"Authorization": "Bearer ${HEADER_TOKEN}"}
	c := discovered(t, mcp.Config{Logger: l.logger(), RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, s)
	call(t, c, "x_echo", nil)
	refuse.Store(true)
	fails(t, c, "x_echo", mcp.CodeUnavailable, "has not run 'echo'", "it refuses access (401 Unauthorized): its key is missing or wrong")
	srv.Close()
	s.URL = "http://127.0.0.1:1/?api_key=query-secret"
	again := client(t, mcp.Config{Logger: l.logger(), Servers: map[string]mcp.Server{"x": s}})
	fails(t, again, "x_connect", mcp.CodeUnavailable, "connection refused")
	for _, secret := range []string{"very-secret", "query-secret"} {
		if text := l.String(); strings.Contains(text, secret) {
			t.Errorf("the log shows a secret:\n%s", text)
		}
	}
}

func TestAForgottenSessionIsMadeAgain(t *testing.T) {
	var inner atomic.Pointer[http.Handler]
	fresh := func() {
		f := newFake()
		t.Cleanup(f.endSessions)
		h := http.Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return f.Server }, nil))
		inner.Store(&h)
	}
	fresh()
	_, s := served(t, newFake(), func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*inner.Load()).ServeHTTP(w, r) })
	}, nil)
	c := discovered(t, mcp.Config{RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, s)
	call(t, c, "x_echo", nil)
	fresh() // The server restarts.
	call(t, c, "x_echo", nil)
	must(t, c.Close())
}

func TestHTTPServerGoesAndComes(t *testing.T) {
	var down atomic.Bool
	_, s := served(t, newFake(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil)
	var now clock
	c := discovered(t, mcp.Config{RetryDelay: time.Minute, MaxRetryDelay: time.Minute, Now: now.now}, s)
	down.Store(true)
	fails(t, c, "x_echo", mcp.CodeUnavailable, "Bad Gateway")
	down.Store(false)
	now.pass(time.Minute)
	call(t, c, "x_echo", nil)
	down.Store(true) // while it is connected
	fails(t, c, "x_echo", mcp.CodeUnavailable, "failed in the middle of the call of 'echo'", "Bad Gateway")
	fails(t, c, "x_echo", mcp.CodeUnavailable, "Bad Gateway", "next try in")
	down.Store(false)
	now.pass(time.Minute)
	call(t, c, "x_echo", nil)
	must(t, c.Close())
}

func TestRedirectsStayOnTheHost(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed to another host, with %v", r.Header)
	}))
	t.Cleanup(target.Close)
	_, s := served(t, newFake(), func(http.Handler) http.Handler {
		return http.RedirectHandler(target.URL, http.StatusTemporaryRedirect)
	}, nil)
	s.Headers = map[string]redact.Secret{"X-Key": "some-secret-key"}
	c := client(t, mcp.Config{Servers: map[string]mcp.Server{
		"x": s,
	}})
	fails(t, c, "x_connect", mcp.CodeUnavailable, "redirects to another host")
}

func TestHugeMessages(t *testing.T) {
	t.Parallel()
	_, s := served(t, newFake(), nil, &sdk.StreamableHTTPOptions{JSONResponse: true})
	_, stream := served(t, newFake(), nil, nil)
	for name, server := range map[string]mcp.Server{"json": s, "stream": stream, "stdio": child(t, "fake")} {
		t.Run(name, func(t *testing.T) {
			c := discovered(t, mcp.Config{MaxMessage: 100_000, RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, server)
			ws := t.TempDir()
			if res, fault := run(t, t.Context(), c, "x_huge", map[string]any{"n": 50_000}, ws); fault != nil || !strings.Contains(res.Text, "[cut: the limit is 29000 of 50000 characters; the whole is in the file tool-output/mcp-x-") {
				t.Errorf("a long text: %.200s…, %v", res.Text, fault)
			}
			_, fault := run(t, t.Context(), c, "x_huge", map[string]any{"n": 500_000}, ws)
			if fault == nil || fault.Code != mcp.CodeUnavailable || !strings.Contains(fault.Message, "too large") && !strings.Contains(fault.Message, "exceeded 100000 bytes") {
				t.Errorf("a huge message: %+v", fault)
			}
			must(t, c.Close())
		})
	}
}

func TestPrivateAddresses(t *testing.T) {
	for _, tc := range []struct {
		host    string
		allowed bool
		want    string // an address that may be reached besides the public ones
		not     string // one that may not
	}{
		{"mcp.example.com", false, "", "127.0.0.1"},
		{"mcp.example.com", true, "192.168.1.2", "169.254.169.254"},
		{"localhost", false, "::1", "169.254.169.254"},
		{"files", false, "172.18.0.3", "169.254.169.254"},
		{"mcp.internal.", false, "10.0.0.1", "0.0.0.0"},
		{"10.1.2.3", false, "10.1.2.3", "10.1.2.4"},
		{"10.1.2.3", true, "10.1.2.3", "127.0.0.1"},
		{"::ffff:10.1.2.3", false, "10.1.2.3", "10.1.2.4"},
	} {
		may := func(address string) bool {
			return slices.ContainsFunc(mcp.PrivateRanges(tc.host, tc.allowed), func(p netip.Prefix) bool {
				return p.Contains(netip.MustParseAddr(address))
			})
		}
		if tc.want != "" && !may(tc.want) {
			t.Errorf("%s (%t) may not reach %s", tc.host, tc.allowed, tc.want)
		}
		if may(tc.not) {
			t.Errorf("%s (%t) may reach %s", tc.host, tc.allowed, tc.not)
		}
	}
}

// Servers that were written before streamable HTTP take no POST where their stream of events is.
func TestAServerThatSpeaksHTTPWithEventsIsReached(t *testing.T) {
	f := newFake()
	web := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return f.Server }, nil))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	t.Cleanup(f.endSessions)
	c := discovered(t, mcp.Config{}, mcp.Server{URL: web.URL + "/sse"})
	if got := call(t, c, "x_echo", map[string]any{"text": "hi"}); got != `{"text":"hi"}` {
		t.Errorf("got %q", got)
	}
	call(t, c, "x_echo", nil) // the stream outlives the start
	must(t, c.Close())
}

// Decoded, each value takes some hundred bytes: 15 MB of them took a gigabyte. What is beside them is shown.
func TestContentOfTooManyValuesIsNotShown(t *testing.T) {
	_, stream := served(t, newFake(), nil, nil)
	_, whole := served(t, newFake(), nil, &sdk.StreamableHTTPOptions{JSONResponse: true})
	for name, s := range map[string]mcp.Server{"program": child(t, "fake"), "stream": stream, "whole": whole} {
		t.Run(name, func(t *testing.T) {
			c := discovered(t, mcp.Config{}, s)
			if got := call(t, c, "x_dense", nil); !strings.HasPrefix(got, ",[{,[{") || !strings.HasSuffix(got, "\n\n[content of more than 200,000 values, which is not shown]") {
				t.Errorf("got %.100q…", got)
			}
			if !c.Status()[0].Connected {
				t.Error("the connection was ended")
			}
			must(t, c.Close())
		})
	}
}

// What has as many signs in its texts alone is shown.
func TestATextOfManySignsIsNoMessageOfManyValues(t *testing.T) {
	signs := strings.Repeat(`[{,"\\`+"\n", 60_000)
	f := newFake()
	f.add(&sdk.Tool{Name: "signs", Description: "Signs"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return say("%s", signs)
	})
	_, stream := served(t, f, nil, nil)
	c := discovered(t, mcp.Config{}, stream)
	if got := call(t, c, "x_signs", nil); !strings.HasPrefix(got, signs[:1000]) {
		t.Errorf("got %.200q", got)
	}
	must(t, c.Close())
}
