package mcp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// stuck leaves the requests whose body contains a text without an answer, until the client ends them.
// It calls come for each.
func stuck(text string, come func()) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil && bytes.Contains(body, []byte(text)) {
				come()
				<-r.Context().Done()
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		})
	}
}

// The library waits for the headers of the answer to its subscription, with a context of its own. A server that was slow
// to say what it can do is asked in the older way, which has no subscription.
func TestAServerThatLeavesTheSubscriptionOpenIsGivenUp(t *testing.T) {
	t.Parallel()
	_, s := served(t, newFake(), func(next http.Handler) http.Handler {
		return stuck(`"subscriptions/listen"`, func() {})(stuck(`"initialize"`, func() {})(next))
	}, &sdk.StreamableHTTPOptions{Stateless: true})
	s.StartTimeout = 300 * time.Millisecond
	c := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": s}, RetryDelay: time.Hour, MaxRetryDelay: time.Hour})
	fails(t, c, "x_connect", mcp.CodeUnavailable, "it was not ready within 300ms")
	must(t, c.Close())
}

func TestClosingEndsARequestWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	f, waits := newFake(), make(chan struct{})
	f.add(&sdk.Tool{Name: "ask"}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, err := req.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Who?", RequestedSchema: object(nil)})
		return nil, err
	})
	_, s := served(t, f, stuck(`"action":"accept"`, func() { close(waits) }), nil)
	c := discovered(t, mcp.Config{}, s)
	p := &person{answer: says(nil)}
	ctx, cancel := context.WithCancel(p.context(t))
	go func() { <-waits; cancel() }()
	if _, fault := run(t, ctx, c, "x_ask", nil, ""); fault == nil || fault.Code != toolgroups.CodeCancelled {
		t.Errorf("the stopped call: %+v", fault)
	}
	must(t, c.Close())
}
