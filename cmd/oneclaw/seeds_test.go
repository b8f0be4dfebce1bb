package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tiktoken-go/tokenizer"

	"oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// coreNames are the tools that every request offers, in their order.
var coreNames = toolgroups.CoreOrder()

// toldToCall is a model that calls what the person writes: each line of the message is a tool
// and its arguments, all called at once; then it repeats the results.
func toldToCall(_ context.Context, req openai.Request) (openai.Reply, error) {
	var results []string
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == "tool" {
			results = append(results, m.Content)
			continue
		}
		if m.Role != "user" {
			break
		}
		var calls []openai.ToolCall
		for i, line := range strings.Split(m.Content, "\n") {
			if name, arguments, ok := strings.Cut(strings.TrimPrefix(line, "call "), " "); ok && strings.HasPrefix(line, "call ") {
				calls = append(calls, openai.ToolCall{ID: fmt.Sprint("call_", len(req.Messages), "_", i), Name: name, Arguments: arguments})
			}
		}
		if calls != nil {
			return openai.Reply{Calls: calls}, nil
		}
		break
	}
	if results == nil {
		return openai.Reply{Text: "hello"}, nil
	}
	slices.Reverse(results)
	return openai.Reply{Text: strings.Join(results, "\n")}, nil
}

// useTool is the reply of a model that calls a tool, and first loads its group if that is not offered.
func useTool(req openai.Request, group, tool, arguments string) (openai.Reply, error) {
	if !slices.Contains(req.ToolNames(), tool) {
		tool, arguments = "load_tool_group", fmt.Sprintf(`{"group_name":%q}`, group)
	}
	return openai.Reply{Calls: []openai.ToolCall{{Name: tool, Arguments: arguments}}}, nil
}

func loadCall(groups ...string) string {
	var lines []string
	for _, g := range groups {
		lines = append(lines, fmt.Sprintf(`call load_tool_group {"group_name":%q}`, g))
	}
	return strings.Join(lines, "\n")
}

// namesIn are the names of a group's tools, in their order.
func namesIn(t *testing.T, registry *toolgroups.Registry, groups ...string) []string {
	t.Helper()
	var names []string
	for _, name := range groups {
		g, ok := registry.Group(name)
		if !ok {
			t.Fatalf("there is no group %s", name)
		}
		for _, tool := range g.Tools {
			names = append(names, tool.Name)
		}
	}
	return names
}

// TestToolsOfTheFirstRequestOnTheWire looks at what the real program sends:
// first the core, then a group with 17 tools, then all, exactly these names in this order.
func TestToolsOfTheFirstRequestOnTheWire(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(toldToCall))
	w.env["ONECLAW_ADMINS"] = "telegram:*"
	ann, registry := w.person("Ann"), registryOf(t)
	bot := w.run()
	w.ask(bot, ann, "hello", nil)
	if diff := cmp.Diff(coreNames, w.lastTools()); diff != "" {
		t.Errorf("first request (-want +got):\n%s", diff)
	}
	wantIn(t, w.ask(bot, ann, loadCall("config"), nil), "Loaded 17 tools from group 'Configuration':")
	if diff := cmp.Diff(append(slices.Clone(coreNames), namesIn(t, registry, "config")...), w.lastTools()); diff != "" {
		t.Errorf("with config (-want +got):\n%s", diff)
	}
	rest := slices.DeleteFunc(registry.GroupNames(), func(name string) bool { return name == "config" })
	w.ask(bot, ann, loadCall(rest...), nil)
	all := slices.Concat(coreNames, namesIn(t, registry, "config"), namesIn(t, registry, rest...))
	w.wantCapped(t, bot, ann, all)
	for group, want := range map[string][]string{
		"pdf":                {"pdf_info", "pdf_extract_text", "pdf_render_page"},
		"documents":          {"read_document", "search_document", "write_document"},
		"scheduled_tasks":    {"schedule_task", "list_scheduled_tasks", "run_scheduled_task", "update_scheduled_task", "delete_scheduled_task"},
		"background":         {"start_background_task", "list_background_tasks", "wait_background_tasks", "cancel_background_task"},
		"js_tool_management": {"create_js_tool", "list_user_tools", "update_js_tool", "delete_js_tool"},
	} {
		if diff := cmp.Diff(want, namesIn(t, registry, group)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", group, diff)
		}
	}
}

// wantCapped expects the newest request to offer these tools up to the limit that OpenAI
// documents, the last places taken by tool_describe and tool_call, which reach the others.
func (w *harness) wantCapped(t *testing.T, bot *process, who int64, all []string) {
	t.Helper()
	const most = 128
	if diff := cmp.Diff(append(slices.Clone(all[:most-2]), toolgroups.ToolDescribe, toolgroups.ToolCall), w.lastTools()); diff != "" {
		t.Errorf("with all tools (-want +got):\n%s", diff)
	}
	behind := "tasks_list_tasklists"
	if !slices.Contains(all[most:], behind) {
		t.Fatalf("%s is not behind the limit", behind)
	}
	wantIn(t, w.ask(bot, who, fmt.Sprintf(`call tool_call {"name":%q,"arguments":{}}`, behind), nil), "Google")
}

// TestRoutingAllSendsEveryTool switches grouping off: all tools are sent from the
// start, each with the name, description and schema that it has in its manifest.
func TestRoutingAllSendsEveryTool(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(toldToCall))
	w.env["ONECLAW_ROUTING"], w.env["ONECLAW_ADMINS"] = "all", "telegram:*"
	ann, registry := w.person("Ann"), registryOf(t)
	bot := w.run()
	w.ask(bot, ann, "hello", nil)
	first := w.model.Requests()[0]
	for _, sent := range first.Tools[:len(first.Tools)-2] {
		tool, ok := registry.Tool(sent.Name)
		var have, want bytes.Buffer
		if err := errors.Join(json.Compact(&have, sent.Parameters), json.Compact(&want, tool.Parameters)); err != nil {
			t.Fatalf("%s: %v", sent.Name, err)
		}
		if !ok || sent.Description != tool.Description || have.String() != want.String() {
			t.Errorf("%s is sent as %q with %s", sent.Name, sent.Description, sent.Parameters)
		}
	}
	w.wantCapped(t, bot, ann, append(slices.Clone(coreNames), namesIn(t, registry, registry.GroupNames()...)...))
}

// TestEachConversationItsGroups loads a group in one
// conversation; the same person's next one after a clear, and another person's, begin with
// the core alone. Telegram and Slack behave alike.
func TestEachConversationItsGroups(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, false, openai.ResponderFunc(toldToCall), func(s *botChat) {
		s.start()
		answered := 0
		say := func(text, want string) []string {
			t.Helper()
			s.say(0, text)
			answered++
			s.until("answer to "+text, func(all []shown) bool {
				return len(all) >= answered && strings.Contains(all[len(all)-1].text, want)
			})
			return s.w.lastTools()
		}
		pdf := slices.Concat(coreNames, []string{"pdf_info", "pdf_extract_text", "pdf_render_page"})
		if diff := cmp.Diff(pdf, say(loadCall("pdf"), "Loaded 3 tools")); diff != "" {
			s.t.Errorf("with pdf (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(pdf, say("and now?", "hello")); diff != "" {
			s.t.Errorf("in the next message (-want +got):\n%s", diff)
		}
		say("!clear", "")
		say("/clear", "")
		if diff := cmp.Diff(coreNames, say("hello again", "hello")); diff != "" {
			s.t.Errorf("after a clear (-want +got):\n%s", diff)
		}
	})
}

// Groups of one conversation are not active in another, or after /clear.
func TestAnotherChatHasNoneOfIt(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(toldToCall))
	ann, bob := w.person("Ann"), w.person("Bob")
	bot := w.run()
	wantIn(t, w.ask(bot, ann, loadCall("pdf"), nil), "Loaded 3 tools")
	w.ask(bot, bob, "hello", nil)
	if diff := cmp.Diff(coreNames, w.lastTools()); diff != "" {
		t.Errorf("another chat (-want +got):\n%s", diff)
	}
}

// TestCoreAloneSavesSchemaTokens weighs what the program really sends.
func TestCoreAloneSavesSchemaTokens(t *testing.T) {
	registry := registryOf(t)
	tokens := func(groups ...string) int {
		return toolgroups.EstimateTokens(toolgroups.NewSet(func() *toolgroups.Registry { return registry }, groups).Round().Tools())
	}
	core, mail, all := tokens(), tokens("google_gmail"), tokens(registry.GroupNames()...)
	if 5*core > all {
		t.Errorf("core alone is %d of %d tokens, want at most a fifth", core, all)
	}
	if 3*mail > all {
		t.Errorf("a mail task is %d of %d tokens, want at most a third", mail, all)
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := codec.Count(registry.Listing()); err != nil || n > 415 {
		t.Errorf("the listing costs %d tokens, more than 415 (%v)", n, err)
	}
}

// TestTheGroupsOfTheContract compares the groups of the real program with the
// contract: their names, how people and the model are told of them, their sizes, who may
// load them, and the order of the listing.
//
// At the start all nineteen groups are there.
func TestTheGroupsOfTheContract(t *testing.T) {
	want := []string{
		"config | Configuration | 17", "pdf | PDF Tools | 3", "documents | Documents | 3", "scheduled_tasks | Scheduled Tasks | 5", "memory | Memory | 2", "background | Background Tasks | 4", "questions | Questions | 1",
		"js_tool_management | JS Tool Management | 4", "google_gmail | Google Gmail | 25",
		"google_gmail_settings | Google Gmail Settings | 14", "google_drive | Google Drive | 15",
		"google_calendar | Google Calendar | 14", "google_contacts | Google Contacts | 7", "google_docs | Google Docs | 8",
		"google_sheets | Google Sheets | 9", "google_slides | Google Slides | 7", "google_forms | Google Forms | 5",
		"google_tasks | Google Tasks | 8", "web_search | Web Search | 1",
	}
	var got, listed []string
	for _, g := range registryOf(t).Groups() {
		got = append(got, fmt.Sprintf("%s | %s | %d", g.Name, g.DisplayName, len(g.Tools)))
		line := "- " + g.Name + ": " + g.Description
		if g.Role == toolgroups.RoleAdmin {
			line += " (administrators)"
		}
		listed = append(listed, line)
		if g.Description == "" || g.Source != toolgroups.SourceBuiltin {
			t.Errorf("%s is described as %q and comes from %q", g.Name, g.Description, g.Source)
		}
		if admins := g.Name == "config" || g.Name == "js_tool_management"; admins != (g.Role == toolgroups.RoleAdmin) {
			t.Errorf("%s has the role %d", g.Name, g.Role)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if !strings.HasSuffix(registryOf(t).Listing(), strings.Join(listed, "\n")) {
		t.Errorf("the listing is\n%s", registryOf(t).Listing())
	}
}

// TestTheRealSchemasAtTheThreshold decides with the real schemas: deferred
// where they are a tenth of the context, whole where they are less.
func TestTheRealSchemasAtTheThreshold(t *testing.T) {
	var deferrable []toolgroups.Tool
	for _, group := range registryOf(t).Groups() {
		deferrable = append(deferrable, group.Tools...)
	}
	tokens := utf8.RuneCount(toolgroups.EncodeTools(deferrable)) / 4
	router, err := search.NewRouter(search.RouterConfig{Routing: search.RoutingAuto})
	if err != nil {
		t.Fatal(err)
	}
	for context, want := range map[int]string{10 * tokens: "search", 10*tokens + 1000: "all", 200_000: "all", 64_000: "search"} {
		if got := router.Route(toolgroups.RouteInput{Registry: registryOf(t), ContextTokens: context}).Mode; got != want {
			t.Errorf("%d tokens of tools, a context of %d: the mode is %s, want %s", tokens, context, got, want)
		}
	}
}

// TestTwentyToolsOfAServer runs search from end to end with the real program
// and a server in a process of its own.
//
// Twenty more tools are found, described and called from end to end.
func TestTwentyToolsOfAServer(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(toldToCall))
	w.env["ONECLAW_ROUTING"], w.env["ONECLAW_ADMINS"] = "search", "telegram:*"
	ann := w.person("Ann")
	names, _ := w.withServers()
	w.learnServers(names)
	bot := w.run()
	w.ask(bot, ann, "hello", nil)
	offered := w.lastTools()
	for _, bridge := range []string{toolgroups.ToolSearch, toolgroups.ToolDescribe, toolgroups.ToolCall} {
		if !slices.Contains(offered, bridge) {
			t.Errorf("%s is not offered in %v", bridge, offered)
		}
	}
	if len(offered) != len(coreNames)+3 {
		t.Errorf("%d tools are offered: %v", len(offered), offered)
	}
	type found struct {
		Matches []struct{ Name, Use string }
		Others  map[string][]string
	}
	find := func() (f found) {
		w.ask(bot, ann, `call tool_search {"query":"create issue","limit":3}`, nil)
		requests := w.model.Requests()
		last := requests[len(requests)-1].Messages
		if err := json.Unmarshal([]byte(last[len(last)-1].Content), &f); err != nil || len(f.Matches) != 3 {
			t.Fatalf("found %d: %v: %s", len(f.Matches), err, last[len(last)-1].Content)
		}
		return f
	}
	first, again := find(), find()
	name := first.Matches[0].Name
	if group := "mcp_" + names[0]; !strings.HasPrefix(first.Matches[0].Use, "(") || len(first.Others[group]) == 0 || len(first.Others[group]) > 40 {
		t.Errorf("found %+v", first)
	}
	if again.Matches[0].Name != name || again.Matches[0].Use != "" {
		t.Errorf("found again, though it is in view: %+v", again)
	}
	wantIn(t, w.ask(bot, ann, fmt.Sprintf(`call tool_describe {"name":%q}`, name), nil), name, "properties")
}
