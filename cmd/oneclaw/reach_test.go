package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/bridge/platformtest"
	emulator "oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// reachTable is what came of it; docs/measured.md tells its sum.
const reachTable = "testdata/reach.md"

// limits are the providers that a conversation is tried with: how many tools they take, and how
// large a model's context is. The first is what the table is about.
var limits = []struct{ tools, context int }{
	{128, 128_000}, {128, 1_000_000}, {128, 40_000}, {128, 8_192}, {64, 128_000}, {64, 1_000_000}, {64, 40_000}, {64, 8_192},
}

// reachEvents are what happens in a conversation that has loaded all groups, in their order.
var reachEvents = []string{"load", "next message", "restart", "summary", "what was said is erased", "smaller cap", "other routing"}

// The test loads every group there is, in each mode, with few tools and many, and looks at what the
// model is sent after each event: each tool is in the array, or its name is in view, or that of
// its group, of which tool_describe lists the tools; and then its parameters are shown and it
// runs, through tool_call and by its own name, without a second load.
func TestLoadedToolsStayWithinReach(t *testing.T) {
	platformtest.OnlyNightly(t)
	sizes := []struct {
		name   string
		server *toolgroups.Group
	}{
		{"17 groups", nil},
		{"and a server of 90 tools", server("crm", 90, 5, 300)},
		{"and one of 160 large tools", server("erp", 160, 14, 1_200)},
	}
	builtin := registryOf(t)
	var table strings.Builder
	table.WriteString("| mode | tools | " + strings.Join(reachEvents, " | ") + " |\n|---|---|" + strings.Repeat("---|", len(reachEvents)) + "\n")
	for _, mode := range search.Routings() {
		for n, size := range sizes {
			registry := ranTools(t, builtin, size.server)
			for i, limit := range limits {
				if i > 0 && n < len(sizes)-1 {
					continue // the most tools show it
				}
				t.Run(fmt.Sprintf("%s/%s/%d of %d", mode, size.name, limit.tools, limit.context), func(t *testing.T) {
					r := newReach(t, registry, mode, limit.tools, limit.context)
					cells := sameAsBefore(r.play())
					switch {
					case i == 0:
						fmt.Fprintf(&table, "| `%s` | %s | %s |\n", mode, size.name, strings.Join(cells, " | "))
					case limit.tools == limits[0].tools && limit.context == 8_192:
						fmt.Fprintf(&table, "| `%s` | these, and a context of 8,192 tokens | %s |\n", mode, strings.Join(cells, " | "))
					}
				})
			}
		}
	}
	compareReach(t, table.String())
}

// sameAsBefore returns cells for a reader: one that repeats the cell on its left says "same".
func sameAsBefore(cells []string) []string {
	shown := slices.Clone(cells)
	for i := 1; i < len(cells); i++ {
		if cells[i] == cells[i-1] {
			shown[i] = "same"
		}
	}
	return shown
}

func compareReach(t *testing.T, table string) {
	t.Helper()
	if t.Failed() {
		return
	}
	if os.Getenv("ONECLAW_UPDATE") != "" {
		if err := os.WriteFile(reachTable, []byte(table), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(reachTable)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != table {
		t.Errorf("%s is out of date; write it with ONECLAW_UPDATE=1 go test ./cmd/oneclaw -run StayWithinReach. Now:\n%s", reachTable, table)
	}
}

// server is a group of an MCP server: so many tools of so many parameters, with descriptions of
// some length.
func server(name string, tools, parameters, description int) *toolgroups.Group {
	g := &toolgroups.Group{Name: name, Source: "mcp:" + name, Description: "Tools of " + name}
	for i := range tools {
		properties := map[string]any{}
		for k := range parameters {
			properties[fmt.Sprintf("parameter_%02d", k)] = map[string]string{"type": "string", "description": "What it is about"}
		}
		schema, _ := json.Marshal(map[string]any{"type": "object", "properties": properties})
		g.Tools = append(g.Tools, toolgroups.Tool{
			Name: fmt.Sprintf("%s_action_%03d", name, i), Parameters: schema, Effect: toolgroups.ReadOnly,
			Description: "Does something. " + strings.Repeat("It says more. ", description/14),
		})
	}
	return g
}

// ranTools is the registry of the program, with a server, in which every tool only says that it
// ran.
func ranTools(t *testing.T, builtin *toolgroups.Registry, server *toolgroups.Group) *toolgroups.Registry {
	t.Helper()
	ran := func(tools []toolgroups.Tool) []toolgroups.Tool {
		tools = slices.Clone(tools)
		for i := range tools {
			tools[i].Run = func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
				return toolgroups.TextResult("%s ran", call.Name)
			}
			tools[i].ChecksArguments = true
		}
		return tools
	}
	cfg := toolgroups.RegistryConfig{Groups: builtin.Groups()}
	for _, tool := range builtin.Core() {
		if tool.Name != toolgroups.LoadToolGroup {
			cfg.Core = append(cfg.Core, ran([]toolgroups.Tool{tool})...)
		}
	}
	if server != nil {
		cfg.Groups = append(cfg.Groups, *server)
	}
	for i := range cfg.Groups {
		cfg.Groups[i].Tools = ran(cfg.Groups[i].Tools)
	}
	registry, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// reach is a conversation with a scripted model behind HTTP.
type reach struct {
	t        *testing.T
	registry *toolgroups.Registry
	mode     search.Routing
	router   *search.Router // of the mode; nil before it is made
	config   search.Config
	role     toolgroups.Role
	model    shaped
	agent    *agent.Agent
	history  []agent.Message
	replies  [][]emulator.ToolCall // the calls of the next replies
	sent     emulator.Request      // the newest request
}

// shaped is a model with a profile of its own.
type shaped struct {
	agent.Model
	profile agent.Profile
}

func (s shaped) Profile() agent.Profile { return s.profile }

// newReach begins a conversation with a model that takes so many tools.
func newReach(t *testing.T, registry *toolgroups.Registry, mode search.Routing, tools, contextTokens int) *reach {
	r := &reach{t: t, registry: registry, mode: mode, role: toolgroups.RoleAdmin}
	brain := emulator.ResponderFunc(func(_ context.Context, req emulator.Request) (emulator.Reply, error) {
		if len(req.Tools) > 0 { // else it is asked for a summary
			r.sent = req
		}
		if len(r.replies) == 0 || len(req.Tools) == 0 {
			return emulator.Reply{Text: "done"}, nil
		}
		calls := r.replies[0]
		r.replies = r.replies[1:]
		return emulator.Reply{Calls: calls}, nil
	})
	served, err := emulator.New(emulator.Config{Responder: brain})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	client, err := openai.New(openai.Config{BaseURL: server.URL + "/v1", Model: emulator.DefaultModel})
	if err != nil {
		t.Fatal(err)
	}
	r.model = shaped{client, agent.Profile{Name: emulator.DefaultModel, MaxTools: tools, ContextTokens: contextTokens}}
	r.agent = agent.New(agent.Config{})
	return r
}

func (r *reach) turn() agent.Turn {
	if r.router == nil {
		var err error
		if r.router, err = search.NewRouter(search.RouterConfig{Routing: r.mode, Config: r.config}); err != nil {
			r.t.Fatal(err)
		}
	}
	groups := agent.RestoreGroups(slices.Values(r.history))
	return agent.Turn{
		Prompt: "You help.", History: slices.DeleteFunc(slices.Clone(r.history), func(m agent.Message) bool { return m.Erased }), Set: toolgroups.NewSet(func() *toolgroups.Registry { return r.registry }, groups),
		Router: r.router, Scope: toolgroups.Scope{Role: r.role}, Model: r.model,
		Gate: func(_ context.Context, call toolgroups.Call, _ toolgroups.Tool, _ agent.Input) (agent.Decision, error) {
			if call.Name == toolgroups.ToolCall {
				r.t.Error("a guard is asked about tool_call")
			}
			return agent.Decision{Verdict: agent.Allow}, nil
		},
	}
}

// say has a question answered with calls, all in one reply.
func (r *reach) say(calls ...emulator.ToolCall) {
	r.t.Helper()
	var replies [][]emulator.ToolCall
	if len(calls) > 0 {
		replies = append(replies, calls)
	}
	if err := r.run(replies...); err != nil {
		r.t.Fatal(err)
	}
}

// run has a question answered with replies of calls, and then in words.
func (r *reach) run(replies ...[]emulator.ToolCall) error {
	for _, calls := range replies {
		for i := range calls {
			calls[i].ID = fmt.Sprintf("call_%d", i)
		}
	}
	r.replies = replies
	r.history = append(r.history, agent.Message{Role: agent.RoleUser, Text: "Go on."})
	for m, err := range r.agent.Run(r.t.Context(), r.turn()) {
		if err != nil {
			return err
		}
		r.history = append(r.history, m)
	}
	return nil
}

func load(group string) emulator.ToolCall {
	return emulator.ToolCall{Name: toolgroups.LoadToolGroup, Arguments: fmt.Sprintf(`{"group_name":%q}`, group)}
}

// play has everything happen and says of each event where the tools are.
func (r *reach) play() []string {
	r.say()
	grouped := func(name string) bool { _, ok := r.registry.GroupOf(name); return ok }
	if first := r.sent.ToolNames(); slices.Contains([]search.Routing{search.RoutingGroups, search.RoutingSearch}, r.mode) && slices.ContainsFunc(first, grouped) {
		r.t.Errorf("a conversation begins with %v", first)
	}
	loads := []emulator.ToolCall{load("nowhere")} // fails, and is not restored
	for _, name := range r.registry.GroupNames() {
		loads = append(loads, load(name))
	}
	r.say(loads...)
	before := string(r.sent.ToolsJSON)
	var cells []string
	for _, event := range reachEvents {
		r.happen(event)
		if event == "smaller cap" {
			before = ""
		}
		if now := string(r.sent.ToolsJSON); before != "" && now != before {
			r.t.Errorf("%s: the array has changed from %.2000s to %.2000s", event, before, now)
		}
		if got := agent.RestoreGroups(slices.Values(r.history)); !slices.Equal(got, r.registry.GroupNames()) {
			r.t.Errorf("%s: loaded are %v", event, got)
		}
		cells = append(cells, r.look(event))
	}
	return cells
}

func (r *reach) happen(event string) {
	r.t.Helper()
	switch event {
	case "load":
		return
	case "restart":
		data, err := json.Marshal(r.history)
		r.history = nil
		if err := errors.Join(err, json.Unmarshal(data, &r.history)); err != nil {
			r.t.Fatal(err)
		}
		r.agent, r.router = agent.New(agent.Config{}), nil
	case "summary":
		summary, more, err := r.agent.Compact(r.t.Context(), r.turn(), 600)
		if err != nil || !more {
			r.t.Fatalf("no summary: %v, %v", more, err)
		}
		r.history = append(r.history, summary)
	case "what was said is erased":
		groups := agent.RestoreGroups(slices.Values(r.history))
		for i, m := range r.history {
			r.history[i], _ = m.WithoutTexts(groups)
		}
		r.history = slices.DeleteFunc(r.history, func(m agent.Message) bool { return m.Role == "" })
	case "smaller cap":
		r.model.profile.MaxTools = 40
	case "other routing":
		if r.mode == search.RoutingSearch {
			r.mode = search.RoutingGroups
		} else {
			r.mode = search.RoutingSearch
		}
		r.router = nil
	}
	r.say()
	if event == "summary" {
		if want := "Loaded tool groups: " + strings.Join(r.registry.GroupNames(), ", ") + "."; !strings.Contains(r.sent.Messages[0].Content+r.sent.Messages[1].Content, want) {
			r.t.Errorf("%s: the model is not told %q", event, want)
		}
	}
}

var word = regexp.MustCompile(`[A-Za-z0-9_-]+`)

// unsigned are the parameters of a tool that a signature does not have.
func unsigned(t *testing.T, tool toolgroups.Tool, signature string) []string {
	t.Helper()
	var schema struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(tool.Parameters, &schema); err != nil {
		t.Fatal(err)
	}
	has := word.FindAllString(signature, -1)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(schema.Properties)), func(name string) bool { return slices.Contains(has, name) })
}

// inView are the words in what a model is told, and what it reads as the signatures of tools.
func inView(req emulator.Request) (seen map[string]bool, signed map[string]string) {
	seen, signed = map[string]bool{}, map[string]string{}
	for _, m := range req.Messages {
		if m.Role == "system" { // that lists all groups, loaded or not
			_, m.Content, _ = strings.Cut(m.Content, "Loaded tool groups: ")
		}
		for _, w := range word.FindAllString(m.Content, -1) {
			seen[w] = true
		}
		for line := range strings.Lines(m.Content) {
			if name, signature, ok := strings.Cut(line, "("); ok && strings.HasPrefix(name, "- ") {
				signed[name[2:]] = signature
			}
		}
	}
	return seen, signed
}

// look judges the newest request, and tries tools that are not in its array.
func (r *reach) look(event string) string {
	r.t.Helper()
	array := r.sent.ToolNames()
	seen, signed := inView(r.sent)
	if !slices.Equal(array[:min(len(array), len(coreNames))], coreNames) {
		r.t.Errorf("%s: the array begins with %v, not with the core", event, array)
	}
	if once := slices.Compact(slices.Sorted(slices.Values(array))); len(once) < len(array) {
		r.t.Errorf("%s: there are tools twice in %v", event, array)
	}
	if limit := r.model.profile.MaxTools; limit > 0 && len(array) > limit {
		r.t.Errorf("%s: %d tools for a provider that takes %d", event, len(array), limit)
	}
	// With what the messages get in any case it is the 85 percent that a request may take.
	if size := len(r.sent.ToolsJSON) / 4; size > r.model.profile.ContextTokens*60/100 {
		r.t.Errorf("%s: the tools take %d tokens of a context of %d", event, size, r.model.profile.ContextTokens)
	}
	listed, named, grouped := 0, 0, 0
	var outside []string
	for _, group := range r.registry.Groups() {
		for _, tool := range group.Tools {
			switch {
			case slices.Contains(array, tool.Name):
				listed++
				continue
			case seen[tool.Name]:
				named++
			case seen[group.Name]:
				grouped++
			default:
				r.t.Errorf("%s: nothing says that there is %s of %s", event, tool.Name, group.Name)
			}
			outside = append(outside, tool.Name)
			// A model of 8,192 tokens could not hold them all.
			if event == "load" && r.model.profile.ContextTokens > 8_192 {
				if missing := unsigned(r.t, tool, signed[tool.Name]); len(missing) > 0 {
					r.t.Errorf("%s: %v are not in the signature of %s", event, missing, tool.Name)
				}
			}
		}
	}
	if len(outside) > 0 {
		r.try(event, array, outside)
	}
	var cell []string
	for _, part := range []struct {
		n     int
		where string
	}{{listed, "listed"}, {named, "named"}, {grouped, "by group"}} {
		if part.n > 0 {
			cell = append(cell, fmt.Sprintf("%d %s", part.n, part.where))
		}
	}
	return strings.Join(cell, ", ")
}

// try describes and runs the first, the middle and the last of the tools that are not listed,
// and the group of the last.
func (r *reach) try(event string, array, outside []string) {
	r.t.Helper()
	tried := []string{outside[0], outside[len(outside)/2], outside[len(outside)-1]}
	if !slices.Contains(array, toolgroups.ToolDescribe) || !slices.Contains(array, toolgroups.ToolCall) {
		r.t.Fatalf("%s: %d tools are not listed, and %v reaches none", event, len(outside), array[max(0, len(array)-3):])
	}
	group, _ := r.registry.GroupOf(tried[2])
	names, _ := json.Marshal(tried)
	calls := []emulator.ToolCall{
		{Name: toolgroups.ToolDescribe, Arguments: fmt.Sprintf(`{"names":%s}`, names)},
		{Name: toolgroups.ToolDescribe, Arguments: fmt.Sprintf(`{"names":[%q]}`, group)},
	}
	for _, name := range tried {
		calls = append(calls,
			emulator.ToolCall{Name: toolgroups.ToolCall, Arguments: fmt.Sprintf(`{"name":%q,"arguments":{}}`, name)},
			emulator.ToolCall{Name: name, Arguments: `{}`})
	}
	before := len(r.history)
	r.say(calls...)
	for _, m := range r.history[before:] {
		if m.Role == agent.RoleTool && m.Status != agent.StatusOK {
			r.t.Errorf("%s: %s: %s", event, m.CallID, m.Text)
		}
		if m.Role == agent.RoleTool && m.CallID == "call_0" {
			for _, name := range tried {
				tool, _ := r.registry.Tool(name)
				if !strings.Contains(m.Text, string(tool.Parameters)) {
					r.t.Errorf("%s: the parameters of %s are not described", event, name)
				}
			}
		}
		if m.Role == agent.RoleTool && m.CallID == "call_1" && !strings.Contains(m.Text, tried[2]) {
			r.t.Errorf("%s: the tools of %s are not listed", event, group)
		}
	}
	r.history = r.history[:before] // what was tried tells the model nothing later
}
