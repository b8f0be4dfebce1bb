package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	emulator "oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups"
)

// live is a service with the manners of a real one, reached under its own name over real
// connections.
type live struct {
	t   *testing.T
	p   emulator.Profile
	srv *emulator.Server
	cfg openai.Config
	// think is what the model says.
	think func(ctx context.Context, req emulator.Request) (emulator.Reply, error)
	// addr is where its name leads to.
	mu   sync.Mutex
	addr string
}

func newLive(t *testing.T, p emulator.Profile, change ...func(*emulator.Config)) *live {
	t.Helper()
	l := &live{t: t, p: p, think: func(context.Context, emulator.Request) (emulator.Reply, error) {
		return emulator.Reply{Text: "Fine."}, nil
	}}
	cfg := emulator.Config{Profile: p, Responder: emulator.ResponderFunc(func(ctx context.Context, req emulator.Request) (emulator.Reply, error) {
		return l.think(ctx, req)
	})}
	for _, c := range change {
		c(&cfg)
	}
	srv, err := emulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	base, err := srv.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	l.srv, l.addr = srv, at.Host
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, l.addr)
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	l.cfg = openai.Config{
		BaseURL: strings.Replace(p.URL, "https:", "http:", 1), Model: p.Model, APIKey: key,
		HTTPClient: &http.Client{Transport: transport}, ModelCache: openai.NewModelCache(),
	}
	return l
}

// moved lets the name of the service lead elsewhere.
func (l *live) moved(addr string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addr = addr
	l.cfg.HTTPClient.CloseIdleConnections()
}

// model is a new client, as each turn has one.
func (l *live) model(change ...func(*openai.Config)) *openai.Client {
	l.t.Helper()
	cfg := l.cfg
	for _, c := range change {
		c(&cfg)
	}
	c, err := openai.New(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func once(cfg *openai.Config) { cfg.Retry.MaxAttempts = 1 }

// refusals are the requests that the service has refused.
func (l *live) refusals() (texts []string) {
	for _, r := range l.srv.Requests() {
		if r.Refused != nil {
			texts = append(texts, r.Refused.Message)
		}
	}
	return texts
}

// last is the last request that the service took.
func (l *live) last() emulator.Request {
	all := l.srv.Requests()
	return all[len(all)-1]
}

// liveHarness is a conversation, kept as the bridge would.
type liveHarness struct {
	t       *testing.T
	agent   *agent.Agent
	tools   *toolgroups.Registry
	turn    agent.Turn
	history []agent.Message
}

func newTalk(t *testing.T) *liveHarness {
	t.Helper()
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "note", Description: "Takes a note.", Effect: toolgroups.ReadOnly,
		Parameters: []byte(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		Run: func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
			return toolgroups.TextResult("noted %s", string(call.Arguments))
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return &liveHarness{t: t, agent: agent.New(agent.Config{}), tools: reg, turn: agent.Turn{Prompt: "You help.", CacheKey: "chat", Scope: toolgroups.Scope{Role: toolgroups.RoleUser}}}
}

// set is what the conversation can use.
func (c *liveHarness) set() *toolgroups.Set {
	return toolgroups.NewSet(func() *toolgroups.Registry { return c.tools }, agent.RestoreGroups(slices.Values(c.history)))
}

// try has a message answered and returns the answer.
func (c *liveHarness) try(m agent.Model, text string, names ...string) (string, error) {
	c.t.Helper()
	c.history = append(c.history, agent.Message{Role: agent.RoleUser, Text: text, Files: files(names...)})
	turn := c.turn
	turn.Model, turn.History, turn.Set = m, slices.Clone(c.history), c.set()
	for m, err := range c.agent.Run(c.t.Context(), turn) {
		if err != nil {
			return "", err
		}
		c.history = append(c.history, m)
	}
	last := c.history[len(c.history)-1]
	if !last.Final {
		return "", errors.New("the turn has no answer")
	}
	return last.Text, nil
}

// say has a message answered as wanted.
func (c *liveHarness) say(m agent.Model, text, want string, names ...string) {
	c.t.Helper()
	if got, err := c.try(m, text, names...); err != nil || got != want {
		c.t.Fatalf("%q is answered %q, %v; want %q", text, got, err, want)
	}
}

// compact sums up as often as the bridge would.
func (c *liveHarness) compact(m agent.Model, context int) int {
	c.t.Helper()
	turn := c.turn
	for n := 0; ; n++ {
		turn.Model, turn.History, turn.Set, turn.ContextTokens = m, agent.CompactedHistory(c.history), c.set(), context
		summary, needed, err := c.agent.Compact(c.t.Context(), turn, 0)
		if err != nil {
			c.t.Fatal(err)
		}
		if !needed || n == 8 {
			return n
		}
		c.history = append(c.history, summary)
	}
}

// rounds counts the replies with calls since the last message of a person, and their
// results.
func rounds(req emulator.Request) (n int, results []string) {
	for _, m := range slices.Backward(req.Messages) {
		switch {
		case m.Role == "user":
			slices.Reverse(results)
			return n, results
		case m.Role == "assistant" && len(m.ToolCalls) > 0:
			n++
		case m.Role == "tool":
			results = append(results, m.Content)
		}
	}
	return n, results
}

// notes makes a reply of calls side by side.
func notes(texts ...string) emulator.Reply {
	var r emulator.Reply
	for _, text := range texts {
		r.Calls = append(r.Calls, emulator.ToolCall{Name: "note", Arguments: fmt.Sprintf(`{"text":%q}`, text)})
	}
	return r
}

// threeRounds calls three tools in each of three rounds and says then what came of them.
func threeRounds(_ context.Context, req emulator.Request) (emulator.Reply, error) {
	n, results := rounds(req)
	if n == 3 {
		return emulator.Reply{Text: strings.Join(results, ";")}, nil
	}
	return notes(fmt.Sprint(n, "a"), fmt.Sprint(n, "b"), fmt.Sprint(n, "c")), nil
}

const ofThreeRounds = `noted {"text":"0a"};noted {"text":"0b"};noted {"text":"0c"};noted {"text":"1a"};noted {"text":"1b"};noted {"text":"1c"};` +
	`noted {"text":"2a"};noted {"text":"2b"};noted {"text":"2c"}`
