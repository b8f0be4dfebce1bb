package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v3"

	"oneclaw/bridge/platformtest"
	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// largeServers are the groups of two MCP servers: one of many tools, and one of more that are large.
func largeServers() []*toolgroups.Group {
	return []*toolgroups.Group{server("sales", 90, 5, 300), server("stock", 160, 14, 1_200)}
}

// serveLarge is an MCP server with the tools of a group, which all say that they are done.
func serveLarge(g *toolgroups.Group) error {
	s := sdk.NewServer(&sdk.Implementation{Name: g.Name, Version: "1"}, nil)
	for _, tool := range g.Tools {
		s.AddTool(&sdk.Tool{
			Name: strings.TrimPrefix(tool.Name, g.Name+"_"), Description: tool.Description, InputSchema: tool.Parameters,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
		}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: tool.Name + " is done"}}}, nil
		})
	}
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// withLargeServers configures them for the bot.
func (w *harness) withLargeServers() {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	servers, starts := map[string]any{}, w.t.TempDir()
	for _, g := range largeServers() {
		servers[g.Name] = map[string]any{
			"command": self, "description": g.Description, "start_timeout": patience.String(),
			"env": map[string]string{serverVariable: g.Name, startsVariable: starts, "GORACE": "atexit_sleep_ms=0"},
		}
	}
	w.configure(map[string]any{"mcp": map[string]any{"servers": servers}})
}

// configure writes the file of settings.
func (w *harness) configure(settings map[string]any) {
	w.t.Helper()
	data, err := yaml.Marshal(settings)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.env["ONECLAW_DATA_DIR"], config.ConfigName), data, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// step is the mark by which the answer to a message is known.
var step = regexp.MustCompile(`step \d+\.`)

// stepwise is [toldToCall] with short answers, which repeat the mark of the message; what begins with
// "then " is called in a reply of its own. While held it leaves what is asked after a call
// unanswered.
type stepwise struct {
	held  atomic.Bool
	asked chan openai.Request
}

func (m *stepwise) Reply(ctx context.Context, req openai.Request) (openai.Reply, error) {
	if len(req.Tools) == 0 {
		return openai.Reply{Text: "They have tools loaded."}, nil // sums the conversation up
	}
	if m.held.Load() && req.Messages[len(req.Messages)-1].Role == "tool" {
		select {
		case m.asked <- req:
		case <-ctx.Done():
		}
		<-ctx.Done()
		return openai.Reply{}, ctx.Err()
	}
	last := lastUser(req)
	if calls := strings.Split(req.Messages[last].Content, "\nthen ")[1:]; len(calls) > 0 {
		done := 0
		for _, m := range req.Messages[last:] {
			if m.Role == "tool" {
				done++
			}
		}
		if done < len(calls) {
			name, arguments, _ := strings.Cut(calls[done], " ")
			return openai.Reply{Calls: []openai.ToolCall{{ID: fmt.Sprint("then_", len(req.Messages)), Name: name, Arguments: arguments}}}, nil
		}
	}
	reply, err := toldToCall(ctx, req)
	reply.Text = step.FindString(req.Messages[last].Content) + " " + wording.Clip(reply.Text, 80)
	return reply, err
}

func lastUser(req openai.Request) int {
	for i := len(req.Messages) - 1; i > 0; i-- {
		if req.Messages[i].Role == "user" {
			return i
		}
	}
	return 0
}

// results are what the calls of the newest message came to.
func results(req openai.Request) (texts []string) {
	for _, m := range req.Messages[lastUser(req):] {
		if m.Role == "tool" {
			texts = append(texts, m.Content)
		}
	}
	return texts
}

// restarts is a conversation with the real program, which is ended and started in between.
type restarts struct {
	*botChat
	bot   *process
	model *stepwise
	steps int
}

// tell has a person write something and returns the last request that its answer took.
func (r *restarts) tell(text string) openai.Request {
	r.t.Helper()
	r.steps++
	mark := fmt.Sprintf("step %d.", r.steps)
	r.say(0, mark+"\n"+text)
	return r.answered(mark)
}

func (r *restarts) answered(mark string) openai.Request {
	r.t.Helper()
	r.one(mark)
	for _, req := range slices.Backward(r.w.model.Requests()) {
		if len(req.Tools) > 0 {
			return req
		}
	}
	r.t.Fatal("the model was not asked")
	return openai.Request{}
}

func (r *restarts) restart(signal syscall.Signal, routing search.Routing) {
	r.t.Helper()
	if r.bot != nil {
		r.bot.kill(signal)
	}
	r.w.env["ONECLAW_ROUTING"] = string(routing)
	r.bot = r.start()
}

// loadKilled loads all groups in one reply, kills the program while the model is asked what comes
// next, and returns what it is asked by the program that is started then.
func (r *restarts) loadKilled(groups []string, routing search.Routing) openai.Request {
	r.t.Helper()
	r.steps++
	mark := fmt.Sprintf("step %d.", r.steps)
	r.model.held.Store(true)
	r.say(0, mark+"\n"+loadCall(groups...))
	select {
	case <-r.model.asked:
	case <-time.After(patience):
		r.t.Fatal("the groups were not loaded")
	}
	r.model.held.Store(false)
	r.restart(syscall.SIGKILL, routing)
	return r.answered(mark)
}

// withinReach expects every tool of the groups in the array of a request or named in what the model
// sees, signed with all its parameters; and describes and calls some that are not listed.
func (r *restarts) withinReach(event string, req openai.Request, groups []toolgroups.Group, signed bool) {
	r.t.Helper()
	array := req.ToolNames()
	seen, signatures := inView(req)
	var outside []string
	for _, g := range groups {
		for _, tool := range g.Tools {
			if slices.Contains(array, tool.Name) {
				continue
			}
			outside = append(outside, tool.Name)
			if !seen[tool.Name] {
				r.t.Errorf("%s: nothing says that there is %s of %s", event, tool.Name, g.Name)
			}
			if missing := unsigned(r.t, tool, signatures[tool.Name]); signed && len(missing) > 0 {
				r.t.Errorf("%s: %v are not in the signature of %s", event, missing, tool.Name)
			}
		}
	}
	if len(outside) == 0 {
		r.t.Fatalf("%s: all tools are in the array", event)
	}
	last := outside[len(outside)-1]
	names, _ := json.Marshal([]string{outside[0], last})
	req = r.tell(fmt.Sprintf("call tool_describe {\"names\":%s}\ncall tool_call {\"name\":%q,\"arguments\":{}}\ncall %s {}\ncall list_scheduled_tasks {}", names, last, last))
	got := results(req)
	if len(got) != 4 {
		r.t.Fatalf("%s: %d calls came to something: %q", event, len(got), got)
	}
	described := got[0]
	if described == "As shown above." {
		for _, m := range req.Messages[:lastUser(req)] {
			described += m.Content
		}
	}
	wantIn(r.t, described, `"`+outside[0]+`":`, `"`+last+`":`, "parameter_13")
	for _, result := range got[1:3] {
		if result != last+" is done" {
			r.t.Errorf("%s: %s came to %q", event, last, result)
		}
	}
	if strings.Contains(got[3], "not available") || strings.Contains(got[3], "not found") {
		r.t.Errorf("%s: list_scheduled_tasks came to %q", event, got[3])
	}
}

// The real program loads the 17 groups and two servers of 250 tools, is killed while the model is
// asked what comes next, ended between two messages, and started with another way of routing:
// after each the model is sent each tool, or its name and what shows and runs it, and loads nothing again.
func TestKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	groups := registryOf(t).Groups()
	for _, g := range largeServers() {
		g.Name = "mcp_" + g.Name
		groups = append(groups, *g)
	}
	var names []string
	for _, g := range groups {
		names = append(names, g.Name)
	}
	model := &stepwise{asked: make(chan openai.Request)}
	onBothPlatforms(t, false, model, func(s *botChat) {
		maps.Copy(s.w.env, map[string]string{"ONECLAW_ADMINS": "telegram:*", "ONECLAW_MODEL_CONTEXT": "1000000"})
		if _, ok := s.w.env["SLACK_BOT_TOKEN"]; ok {
			s.w.env["ONECLAW_ADMINS"] = "slack:*"
		}
		s.w.withLargeServers()
		r := &restarts{botChat: s, model: model}
		modes := search.Routings()
		if !platformtest.Nightly() {
			modes = modes[:2]
		}
		r.restart(0, modes[0])
		for _, g := range largeServers() {
			r.bot.out.await(s.t, fmt.Sprintf(`"group":"mcp_%s","tools":%d`, g.Name, len(g.Tools)))
		}
		for i, mode := range modes {
			other := modes[(i+1)%len(modes)]
			r.withinReach(string(mode)+", killed", r.loadKilled(names, mode), groups, true)
			r.restart(syscall.SIGTERM, mode)
			r.withinReach(string(mode)+", ended", r.tell("go on"), groups, false)
			r.restart(syscall.SIGTERM, other)
			r.withinReach(fmt.Sprintf("%s, then %s", mode, other), r.tell("go on"), groups, false)
			s.say(0, s.sign+"clear")
			s.one("Conversation cleared")
			everything := other == search.RoutingAll || other == search.RoutingAuto // from the first request on
			if first := r.tell("hello").ToolNames(); slices.Contains(first, "pdf_info") && !everything {
				s.t.Errorf("%s: a new conversation begins with %v", other, first)
			}
		}
	})
}

// Nine tools that are refused once each, one after the other, are nine tools for the guard against
// repeats, although all are called through tool_call.
//
// Refused calls through `tool_call` count against the tool that was meant.
func TestNineToolsThroughOneOnTheWire(t *testing.T) {
	t.Parallel()
	w := newHarness(t, &stepwise{})
	w.env["ONECLAW_ROUTING"] = string(search.RoutingSearch)
	ann, bot := w.person("Ann"), w.run()
	names := namesIn(t, registryOf(t), "config")[:9] // for administrators
	text := "step 1."
	for _, name := range names {
		text += fmt.Sprintf("\nthen tool_call {\"name\":%q,\"arguments\":{}}", name)
	}
	w.ask(bot, ann, text, nil)
	requests := w.model.Requests()
	got := results(requests[len(requests)-1])
	if len(got) != len(names) {
		t.Fatalf("%d calls came to something: %q", len(got), got)
	}
	for i, name := range names {
		if !strings.Contains(got[i], "only administrators of this bot may load the tool group 'config'") || strings.Contains(got[i], "was refused") {
			t.Errorf("%s: got %q", name, got[i])
		}
	}
}

// The block tools.tool_search, with and without tools.routing, as the real program sends it and as
// its start tells of it.
func TestTheBlockOnTheWire(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	for _, tc := range []struct {
		name             string
		routing, enabled string
		context          int
		// searches says that the three bridge tools stand behind the core, direct that groups do.
		searches, direct bool
		says             string
	}{
		{name: "090: auto, more than a tenth of the context", routing: "auto", enabled: "auto", context: 40_000, searches: true, says: "tools.tool_search.enabled says when this mode defers tools"},
		{name: "091: auto, less than that", routing: "auto", enabled: "auto", context: 400_000, direct: true},
		{name: "092: on", routing: "auto", enabled: "on", context: 1_000_000, searches: true},
		{name: "093: off", routing: "auto", enabled: "off", context: 8_192},
		{name: "125: on, no routing", enabled: "on", context: 1_000_000, searches: true},
		{name: "125: auto, no routing, more than a tenth", enabled: "auto", context: 40_000, searches: true},
		{name: "125: auto, no routing, less than that", enabled: "auto", context: 400_000, direct: true},
		{name: "125: off, no routing", enabled: "off", context: 8_192},
		{name: "125: on, but routing rules", routing: "groups", enabled: "on", context: 8_192, says: "tools.routing rules: tools.tool_search does nothing in this mode"},
	} {
		tools := map[string]any{"tool_search": map[string]any{"enabled": tc.enabled}}
		if tc.routing != "" {
			tools["routing"] = tc.routing
		}
		w.configure(map[string]any{"tools": tools})
		w.env["ONECLAW_MODEL_CONTEXT"] = fmt.Sprint(tc.context)
		bot := w.run()
		asked := w.model.Count()
		wantIn(t, w.ask(bot, ann, "/clear", nil), "closed")
		w.ask(bot, ann, "hello", nil)
		bot.kill(syscall.SIGTERM)
		got := w.model.Requests()[asked].ToolNames()
		if !slices.Equal(got[:len(coreNames)], coreNames) {
			t.Errorf("%s: %v is not the core", tc.name, got[:len(coreNames)])
		}
		behind := got[len(coreNames):]
		switch {
		case tc.searches && !slices.Equal(behind, toolgroups.ReservedNames()):
			t.Errorf("%s: behind the core are %v, want a search", tc.name, behind)
		case tc.direct && (!slices.Contains(behind, "pdf_info") || slices.Contains(behind, toolgroups.ToolSearch)):
			t.Errorf("%s: behind the core are %v, want everything", tc.name, behind)
		case !tc.searches && !tc.direct && len(behind) > 0:
			t.Errorf("%s: behind the core are %v, want nothing", tc.name, behind)
		}
		if log := bot.out.String(); tc.routing != "" && tc.says != "" && !strings.Contains(log, tc.says) {
			t.Errorf("%s: the start does not say %q", tc.name, tc.says)
		} else if tc.routing == "" && strings.Contains(log, `"setting tools.tool_search"`) {
			t.Errorf("%s: the start tells of a setting that does what it says", tc.name)
		}
	}
}

// What the folder of user tools holds that is left out, doctor tells by file, with the reason.
func TestDoctorNamesUserToolsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.env["ONECLAW_ALLOW"] = "telegram:1"
	dir := filepath.Join(w.env["ONECLAW_DATA_DIR"], "tools")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf(`{"name":"many_%d","description":"One of many.","function":"f"}`, i))
	}
	for name, text := range map[string]string{
		"many.json": "[" + strings.Join(many, ",") + "]", "many.js": "function f() { return 1 }",
		"broken.json": "{", "fine.json": `{"name":"fine","description":"Does it."}`, "fine.js": "function fine() { return 1 }",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := examined(t, w.env)
	got := found["user tools"]
	wantIn(t, got.Text, "left out", "broken.json: line 1", "many.json: only the first 50 of 60 tools are taken")
	if strings.Contains(got.Text, "fine") {
		t.Errorf("what can be used is named: %s", got.Text)
	}
}
