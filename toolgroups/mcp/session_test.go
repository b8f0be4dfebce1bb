package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// deployment is a server that can be replaced by another instance while calls run on the first.
type deployment struct {
	server   mcp.Server
	instance atomic.Pointer[http.Handler]
	replaced chan struct{} // closed by replace
	ran      atomic.Int32  // calls of the tool effect
	come     chan struct{} // gets a value for each
	finish   chan struct{} // they end when it is closed
}

// deploy starts a server. ending ends the streams of events when the server is replaced.
func deploy(t *testing.T, options *sdk.StreamableHTTPOptions, ending bool) *deployment {
	t.Helper()
	d := &deployment{replaced: make(chan struct{}), come: make(chan struct{}, 10), finish: make(chan struct{})}
	_, d.server = served(t, newFake(), func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			if ending && r.Method == http.MethodGet {
				go func() {
					select {
					case <-d.replaced:
						cancel()
					case <-ctx.Done():
					}
				}()
			}
			(*d.instance.Load()).ServeHTTP(w, r.WithContext(ctx))
		})
	}, nil)
	d.start(t, options)
	return d
}

// start starts an instance for the requests from now on.
func (d *deployment) start(t *testing.T, options *sdk.StreamableHTTPOptions) {
	t.Helper()
	f := newFake()
	t.Cleanup(f.endSessions)
	f.add(&sdk.Tool{Name: "effect"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		d.ran.Add(1)
		d.come <- struct{}{}
		<-d.finish
		return say("it has happened")
	})
	h := http.Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return f.Server }, options))
	d.instance.Store(&h)
}

// callEffect runs the tool in the background, until it has come to the server.
func (d *deployment) callEffect(t *testing.T, c *mcp.Client) <-chan *toolgroups.Error {
	t.Helper()
	ended := make(chan *toolgroups.Error, 1)
	go func() {
		_, fault := run(t, t.Context(), c, "x_effect", nil, "")
		ended <- fault
	}()
	<-d.come
	return ended
}

// The library tells all calls of a session that it is gone, also those that a server is handling.
func TestACallThatRunsWhenTheSessionEndsIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]*sdk.StreamableHTTPOptions{"stream": nil, "json": {JSONResponse: true}} {
		for cause, stream := range map[string]bool{"another call finds it": false, "the stream of events finds it": true} {
			t.Run(name+", "+cause, func(t *testing.T) {
				t.Parallel()
				d := deploy(t, options, stream)
				c := discovered(t, mcp.Config{RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, d.server)
				ended := d.callEffect(t, c)
				d.start(t, options)
				close(d.replaced)
				if !stream {
					call(t, c, "x_echo", nil)
				}
				fault := <-ended
				if fault == nil || fault.Code != mcp.CodeUnavailable || !strings.Contains(fault.Message, "Whether it had its effect is unknown") {
					t.Errorf("the call that was running: %+v", fault)
				}
				call(t, c, "x_echo", nil)
				close(d.finish)
				must(t, c.Close())
				if n := d.ran.Load(); n != 1 {
					t.Errorf("it ran %d times", n)
				}
			})
		}
	}
}

// Servers of the Python and TypeScript libraries answer with an error in JSON, which looks like an answer
// to the call.
func TestASessionThatIsNotFoundIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status          int
		id, code, words string
	}{
		"an id of its own":   {http.StatusNotFound, `"server-error"`, toolgroups.CodeExecution, "Session not found"},
		"the id of the call": {http.StatusNotFound, "", toolgroups.CodeExecution, "Session not found"},
		"no id":              {http.StatusNotFound, "null", toolgroups.CodeExecution, "Session not found"},
		"another status":     {http.StatusBadRequest, "", toolgroups.CodeExecution, "Session not found"},
		"no error":           {http.StatusOK, "", toolgroups.CodeExecution, "Session not found"},
		"no error and no id": {http.StatusOK, "null", toolgroups.CodeExecution, "Session not found"},
	} {
		t.Run(name, func(t *testing.T) {
			var forgotten atomic.Value // the session
			forgotten.Store("")
			forgets := atomic.Bool{}
			refused := atomic.Int32{}
			_, s := served(t, newFake(), func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					session := r.Header.Get("Mcp-Session-Id")
					body, _ := io.ReadAll(r.Body)
					var q request
					_ = json.Unmarshal(body, &q)
					switch {
					case r.Method == http.MethodGet:
						w.WriteHeader(http.StatusMethodNotAllowed)
						return
					case q.Method == "tools/call" && (session == forgotten.Load() || forgets.Load()):
						refused.Add(1)
						said := tc.id
						if said == "" {
							encoded, _ := json.Marshal(q.ID)
							said = string(encoded)
						}
						w.Header().Set("Content-Type", "application/json")
						w.WriteHeader(tc.status)
						_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"Session not found"}}`, said)
						return
					case q.Method == "tools/call":
						defer forgotten.Store(session)
					}
					r.Body = io.NopCloser(bytes.NewReader(body))
					next.ServeHTTP(w, r)
				})
			}, &sdk.StreamableHTTPOptions{JSONResponse: true})
			c := discovered(t, mcp.Config{RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, s)
			for range 3 {
				call(t, c, "x_echo", nil)
			}
			if n := refused.Load(); n != 2 {
				t.Errorf("%d calls were refused", n)
			}
			forgets.Store(true)
			fails(t, c, "x_echo", tc.code, tc.words)
			if n := refused.Load(); n != 4 {
				t.Errorf("%d calls were refused", n)
			}
			must(t, c.Close())
		})
	}
}

// What a proxy answers to one request ends neither the session nor the calls of others.
func TestACallThatAProxyRefusesEndsNoOtherCall(t *testing.T) {
	t.Parallel()
	for status, words := range map[int]string{
		http.StatusTooManyRequests:    "limits the rate of calls and has not run 'echo'",
		http.StatusServiceUnavailable: "Service Unavailable. Whether it had its effect is unknown",
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			d := deploy(t, nil, false)
			c := discovered(t, mcp.Config{RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, d.server)
			ended := d.callEffect(t, c)
			before := d.instance.Load()
			refuses := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.WriteHeader(status)
					return
				}
				(*before).ServeHTTP(w, r)
			}))
			d.instance.Store(&refuses)
			fails(t, c, "x_echo", mcp.CodeUnavailable, words)
			d.instance.Store(before)
			call(t, c, "x_echo", nil)
			close(d.finish)
			if fault := <-ended; fault != nil {
				t.Errorf("the call that was running: %+v", fault)
			}
			if status == http.StatusTooManyRequests { // also where no other call runs
				d.instance.Store(&refuses)
				fails(t, c, "x_echo", mcp.CodeUnavailable, words)
				d.instance.Store(before)
				call(t, c, "x_echo", nil)
			}
			must(t, c.Close())
		})
	}
}

// Proxies end streams without events after a minute. The server has sent an id in one of them.
func TestAStreamOfEventsThatEndsAgainAndAgainEndsNoCall(t *testing.T) {
	t.Parallel()
	f, sixth := newFake(), make(chan struct{})
	f.add(&sdk.Tool{Name: "wait"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-sixth
		return say("done")
	})
	var streams atomic.Int32
	_, s := served(t, f, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				next.ServeHTTP(w, r)
				return
			}
			n := streams.Add(1)
			if got := r.Header.Get("Last-Event-ID"); got != map[bool]string{true: "seven"}[n == 3] {
				t.Errorf("stream %d begins after the event %q", n, got)
			}
			events(w)
			switch n {
			case 2:
				_, _ = io.WriteString(w, "id: seven\ndata:\n\n")
			case 6:
				close(sixth)
			}
		})
	}, nil)
	c := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": s}})
	call(t, c, "x_connect", nil)
	if got := call(t, c, "x_wait", nil); got != "done" {
		t.Errorf("got %q", got)
	}
	must(t, c.Close())
}
