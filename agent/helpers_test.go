package agent_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the conversations in testdata")
	goleak.VerifyTestMain(m)
}

// model is a model that is a function.
type model func(ctx context.Context, req agent.Request) (agent.Reply, error)

func (f model) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	reply, err := f(ctx, req)
	if err == nil && onDelta != nil && reply.Text != "" {
		onDelta(agent.Delta{Text: reply.Text})
	}
	return reply, err
}

// script is a model that gives one reply after another and remembers the requests.
type script struct {
	t        testing.TB
	replies  []agent.Reply
	requests []agent.Request
}

func (s *script) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	s.requests = append(s.requests, req)
	wellFormed(s.t, req.Messages)
	if len(s.replies) == 0 {
		s.t.Fatalf("request %d was not expected; it ends with %+v", len(s.requests), req.Messages[len(req.Messages)-1])
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply, nil
}

func says(text string) agent.Reply { return agent.Reply{Text: text} }

// calls makes a reply of calls, each "id tool arguments".
func calls(list ...string) agent.Reply {
	var r agent.Reply
	for _, l := range list {
		parts := strings.SplitN(l, " ", 3)
		r.Calls = append(r.Calls, agent.Call{ID: parts[0], Name: parts[1], Arguments: parts[2]})
	}
	return r
}

func loads(id, group string) string {
	return fmt.Sprintf(`%s load_tool_group {"group_name":%q}`, id, group)
}

// world has the tools of the tests and knows what ran.
type world struct {
	t  testing.TB
	mu sync.Mutex
	// ran are the calls that ran, as "tool arguments".
	ran []string
	// fails names tools that fail, with the text of the failure.
	fails map[string]string
	// during, if not nil, is called while a tool runs.
	during   func(ctx context.Context, call toolgroups.Call) error
	registry *toolgroups.Registry
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, fails: map[string]string{}}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{
		Core: []toolgroups.Tool{
			w.tool("get_current_time", toolgroups.ReadOnly),
			w.tool("read_file", toolgroups.ReadOnly),
			w.tool("write_file", toolgroups.Changes),
			w.tool("exec", toolgroups.Consequential),
		},
		Groups: []toolgroups.Group{
			{Name: "config", Tools: []toolgroups.Tool{w.tool("get_config", toolgroups.ReadOnly)}},
			{Name: "pdf", Tools: []toolgroups.Tool{w.tool("pdf_info", toolgroups.ReadOnly)}},
			{Name: "google_gmail", Tools: []toolgroups.Tool{
				w.tool("gmail_search", toolgroups.ReadOnly),
				w.tool("gmail_trash", toolgroups.Consequential),
			}},
			{Name: "google_drive", Tools: []toolgroups.Tool{w.tool("drive_search", toolgroups.ReadOnly)}},
			{Name: "google_calendar", Tools: []toolgroups.Tool{w.tool("calendar_list", toolgroups.ReadOnly)}},
			{Name: "empty"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.registry = reg
	return w
}

func (w *world) tool(name string, effect toolgroups.Effect) toolgroups.Tool {
	return toolgroups.Tool{
		Parameters: []byte(`{"type":"object"}`), // any argument
		Name:       name, Description: "Does " + name + ".", Effect: effect,
		Run: func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
			w.mu.Lock()
			w.ran = append(w.ran, name+" "+string(call.Arguments))
			fault, fails := w.fails[name]
			w.mu.Unlock()
			if w.during != nil {
				if err := w.during(ctx, call); err != nil {
					return toolgroups.Result{}, err
				}
			}
			if fails {
				return toolgroups.Result{}, toolgroups.Errorf("api_error", "%s", fault)
			}
			return toolgroups.TextResult("%s %s done", name, string(call.Arguments))
		},
	}
}

// count is how often a tool ran.
func (w *world) count(tool string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.ran {
		if strings.HasPrefix(r, tool+" ") {
			n++
		}
	}
	return n
}

func (w *world) set(history []agent.Message) *toolgroups.Set {
	current := func() *toolgroups.Registry { return w.registry }
	return toolgroups.NewSet(current, agent.RestoreGroups(slices.Values(history)))
}

// chat is a conversation with an agent, kept as the bridge would.
type chat struct {
	*world
	agent   *agent.Agent
	turn    agent.Turn
	history []agent.Message
}

func newChat(t testing.TB, cfg agent.Config) *chat {
	t.Helper()
	return &chat{world: newWorld(t), agent: agent.New(cfg), turn: agent.Turn{Prompt: "You help.", Scope: toolgroups.Scope{Role: toolgroups.RoleUser}}}
}

// say has a user message answered by the replies of a script, which it returns.
func (c *chat) say(text string, replies ...agent.Reply) *script {
	c.t.Helper()
	s := &script{t: c.t, replies: replies}
	if err := c.run(s, agent.Message{Role: agent.RoleUser, Text: text}); err != nil {
		c.t.Fatal(err)
	}
	if len(s.replies) > 0 {
		c.t.Fatalf("%d replies were not asked for", len(s.replies))
	}
	return s
}

// run goes on from the history and stores what is yielded.
func (c *chat) run(m agent.Model, more ...agent.Message) error {
	c.history = append(c.history, more...)
	turn := c.turn
	turn.Model, turn.History, turn.Set = m, slices.Clone(c.history), c.set(c.history)
	return c.store(c.agent.Run(c.t.Context(), turn))
}

func (c *chat) store(messages func(func(agent.Message, error) bool)) error {
	for m, err := range messages {
		if err != nil {
			return err
		}
		c.history = append(c.history, throughLog(c.t, m))
	}
	return nil
}

// throughLog is what a log gives back for a message.
func throughLog(t testing.TB, m agent.Message) agent.Message {
	t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out agent.Message
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// last is the newest message.
func (c *chat) last() agent.Message { return c.history[len(c.history)-1] }

// result is the newest result of a call id.
func (c *chat) result(id string) agent.Message {
	c.t.Helper()
	for _, m := range slices.Backward(c.history) {
		if m.Role == agent.RoleTool && m.CallID == id {
			return m
		}
	}
	c.t.Fatalf("call %s has no result", id)
	return agent.Message{}
}

// offered are the names of the tools of a request.
func offered(req agent.Request) []string {
	names := make([]string, len(req.Tools))
	for i := range req.Tools {
		names[i] = req.Tools[i].Name
	}
	return names
}

func core() []string {
	return []string{"load_tool_group", "exec", "read_file", "write_file", "get_current_time"}
}

// wellFormed fails where a server would refuse the messages.
func wellFormed(t interface {
	Helper()
	Fatalf(string, ...any)
}, messages []agent.Message,
) {
	t.Helper()
	for i := 0; i < len(messages); i++ {
		switch m := messages[i]; m.Role {
		case agent.RoleUser, agent.RoleNote:
		case agent.RoleSummary:
			if i > 0 {
				t.Fatalf("message %d is a summary", i)
			}
		case agent.RoleAssistant:
			if len(m.Calls) == 0 && strings.TrimSpace(m.Text) == "" {
				t.Fatalf("message %d is an empty reply", i)
			}
			for _, c := range m.Calls {
				i++
				if i == len(messages) || messages[i].Role != agent.RoleTool || messages[i].CallID != c.ID {
					t.Fatalf("call %s has no result at message %d of %+v", c.ID, i, messages)
				}
			}
		default:
			t.Fatalf("message %d, %+v, answers no call", i, m)
		}
	}
}
