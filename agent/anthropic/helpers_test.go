package anthropic_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/agent"
	"oneclaw/agent/anthropic"
	"oneclaw/agent/provider"
	emulator "oneclaw/internal/emulator/anthropic"
	brain "oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is a conversation with a model behind the emulator, kept as the bridge would.
type harness struct {
	t       *testing.T
	srv     *emulator.Server
	cfg     anthropic.Config
	turn    agent.Turn
	tools   *toolgroups.Registry
	history []agent.Message
	// think is what the model says.
	think func(req brain.Request) brain.Reply

	mu  sync.Mutex
	now time.Time
}

const key = "sk-ant-secret"

func newTalk(t *testing.T, change ...func(*emulator.Config)) *harness {
	t.Helper()
	c := &harness{t: t, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), think: func(brain.Request) brain.Reply { return brain.Reply{Text: "Fine."} }}
	cfg := emulator.Config{
		Key: key, Now: c.clock,
		Responder: brain.ResponderFunc(func(_ context.Context, req brain.Request) (brain.Reply, error) { return c.think(req), nil }),
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if c.srv, err = emulator.New(cfg); err != nil {
		t.Fatal(err)
	}
	base, err := c.srv.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.srv.Close(); err != nil {
			t.Error(err)
		}
	})
	if cfg.Model == "" {
		cfg.Model = emulator.DefaultModel
	}
	c.cfg = anthropic.Config{BaseURL: base + "/v1", APIKey: key, Model: cfg.Model, ModelCache: anthropic.NewModelCache(), Retry: provider.Retry{MaxAttempts: 1}}
	c.tools = tools(t, 3, 6)
	c.turn = agent.Turn{Prompt: "You help. " + strings.Repeat("Be kind and brief. ", 300), CacheKey: "chat", Scope: toolgroups.Scope{Role: toolgroups.RoleUser}}
	return c
}

func (c *harness) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *harness) wait(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// tools has so many groups of so many tools beside the core.
func tools(t *testing.T, groups, each int) *toolgroups.Registry {
	t.Helper()
	tool := func(name string) toolgroups.Tool {
		return toolgroups.Tool{
			Name: name, Description: "Takes a note about " + name + ".", Effect: toolgroups.ReadOnly,
			Parameters: []byte(`{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}`),
			Run: func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
				return toolgroups.TextResult("%s %s", call.Name, string(call.Arguments))
			},
		}
	}
	cfg := toolgroups.RegistryConfig{Core: []toolgroups.Tool{tool("note")}}
	for g := range groups {
		group := toolgroups.Group{Name: fmt.Sprint("group", g)}
		for i := range each {
			group.Tools = append(group.Tools, tool(fmt.Sprintf("group%d_tool%d", g, i)))
		}
		cfg.Groups = append(cfg.Groups, group)
	}
	reg, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func (c *harness) model() *anthropic.Client {
	c.t.Helper()
	m, err := anthropic.New(c.cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// by has the tools routed.
func (c *harness) by(mode search.Routing) *harness {
	c.t.Helper()
	r, err := search.NewRouter(search.RouterConfig{Routing: mode})
	if err != nil {
		c.t.Fatal(err)
	}
	c.turn.Router = r
	return c
}

// try has a message answered.
func (c *harness) try(text string, files ...string) (string, error) {
	c.t.Helper()
	m := c.model()
	u := agent.Message{Role: agent.RoleUser, Text: text, Time: c.clock()}
	for _, f := range files {
		u.Files = append(u.Files, toolgroups.File{Path: f, Picture: &toolgroups.Picture{}})
	}
	c.history = append(c.history, u)
	turn := c.turn
	turn.Model, turn.History = m, slices.Clone(c.history)
	turn.Set = toolgroups.NewSet(func() *toolgroups.Registry { return c.tools }, agent.RestoreGroups(slices.Values(c.history)))
	for m, err := range agent.New(agent.Config{Now: c.clock}).Run(c.t.Context(), turn) {
		if err != nil {
			return "", err
		}
		c.history = append(c.history, m)
	}
	return c.history[len(c.history)-1].Text, nil
}

func (c *harness) say(text, want string, files ...string) {
	c.t.Helper()
	if got, err := c.try(text, files...); err != nil || got != want {
		c.t.Fatalf("%q is answered %q, %v; want %q", text, got, err, want)
	}
}

func (c *harness) refusals() (texts []string) {
	for _, r := range c.srv.Requests() {
		if r.Refused != nil {
			texts = append(texts, r.Refused.Message)
		}
	}
	return texts
}

func (c *harness) last() emulator.Request {
	all := c.srv.Requests()
	return all[len(all)-1]
}

// results are those since the last message of a person.
func results(req brain.Request) (all []string) {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == "user" {
			break
		}
		if m.Role == "tool" {
			all = append(all, m.Content)
		}
	}
	slices.Reverse(all)
	return all
}

// calling calls the tools one after another and says then what came of them.
func calling(names ...string) func(brain.Request) brain.Reply {
	return func(req brain.Request) brain.Reply {
		done := results(req)
		if len(done) == len(names) {
			return brain.Reply{Text: strings.Join(done, ";")}
		}
		name, args := names[len(done)], `{"text":"x"}`
		if group, ok := strings.CutPrefix(name, "load "); ok {
			name, args = toolgroups.LoadToolGroup, fmt.Sprintf(`{"group_name":%q}`, group)
		}
		return brain.Reply{Text: "Now.", Calls: []brain.ToolCall{{Name: name, Arguments: args}}}
	}
}
