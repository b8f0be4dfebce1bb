package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// In a small context the array of everything leaves room for the conversation, and
// what does not fit is run as what is behind a provider's cap.
func TestTheArrayLeavesRoomForTheConversation(t *testing.T) {
	const size = 4_000
	for _, routing := range search.Routings() {
		t.Run(string(routing), func(t *testing.T) {
			c, _ := routed(t, routing)
			c.turn.ContextTokens = size
			c.registry = padded(t, c.world, 12_000)
			c.say("x", calls(loads("a", "google_gmail"), loads("b", "extra"), loads("c", "pdf")), says("ok"))
			s := c.say("y", calls("d extra_59 {}", through("e", "extra_59", `{}`), "f pdf_info {}", `g tool_describe {"names":["extra_58"]}`), says("ok"))
			for i, req := range s.requests {
				if tokens := toolgroups.EstimateTokens(req.Tools); tokens > size*60/100 {
					t.Errorf("request %d has %d tokens of tools in a context of %d", i, tokens, size)
				}
			}
			for id, tool := range map[string]string{"d": "extra_59", "e": "extra_59", "f": "pdf_info", "g": "tool_describe"} {
				if got := c.result(id); got.Status != agent.StatusOK || got.Tool != tool {
					t.Errorf("%s is lost: %+v", tool, got)
				}
			}
		})
	}
}

// Nine tools that are refused once each are nine tools, not nine refusals of the one
// that they are called through; a tool that is refused over and over is stopped under its own name.
func TestRefusalsCountForTheToolThatWasMeant(t *testing.T) {
	c, _ := routed(t, search.RoutingGroups)
	c.registry = padded(t, c.world, 3_000)
	var replies []agent.Reply
	for i := range 9 {
		replies = append(replies, calls(through(fmt.Sprint(i), fmt.Sprintf("extra_%02d", i), `{}`)))
	}
	c.sayNarrow(capBelowCore, "x", append(replies, says("sorry"))...)
	for i := range 9 {
		want := fmt.Sprintf("extra_%02d", i)
		if got := c.result(fmt.Sprint(i)); got.Code != toolgroups.CodeNotAvailable || got.Tool != want {
			t.Errorf("%s, refused for the first time: %+v", want, got)
		}
	}
	replies = nil
	for i := range 9 {
		replies = append(replies, calls(through("again", "extra_00", fmt.Sprintf(`{"n":%d}`, i))))
	}
	c.sayNarrow(capBelowCore, "y", append(replies, calls(through("other", "extra_01", `{}`)), says("sorry"))...)
	if got := c.result("again"); got.Code != agent.CodeLoop || got.Tool != "extra_00" || !strings.HasPrefix(got.Text, "Tool 'extra_00' is not available") {
		t.Errorf("refused for the ninth time: %+v", got)
	}
	if got := c.result("other"); got.Code != toolgroups.CodeNotAvailable || got.Tool != "extra_01" {
		t.Errorf("another tool, refused for the first time: %+v", got)
	}
}

// Nor are failures of one tool those of another.
func TestFailuresCountForTheToolThatRan(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	c.fails["gmail_search"] = "broken"
	var replies []agent.Reply
	for i := range 9 {
		replies = append(replies, calls(through("a", "gmail_search", fmt.Sprintf(`{"n":%d}`, i))))
	}
	c.say("x", append(replies, calls(through("b", "drive_search", `{}`)), says("sorry"))...)
	if got := c.result("a"); got.Code != agent.CodeLoop || !strings.HasPrefix(got.Text, "Tool 'gmail_search' failed 8 times") || c.count("gmail_search") != 8 {
		t.Errorf("the ninth failure: %+v", got)
	}
	if got := c.result("b"); got.Status != agent.StatusOK || c.count("drive_search") != 1 {
		t.Errorf("another tool: %+v", got)
	}
}

// answers are what a call is answered in each mode.
type answers struct{ groups, search, all string }

// What a load, a description and a call answer where there is nothing, where it is switched off, and
// where the sender may not: the same in every mode that has the tool which was called.
func TestMistakesInEveryMode(t *testing.T) {
	const (
		nothing = "tool_not_found: Tool 'made_up' not found"
		off     = "tool_not_available: Tool '%s' is not available for this agent. It is switched off by an administrator."
		nowOff  = "tool_globally_disabled: Tool '%s' is switched off by an administrator. Go on without it."
		admins  = "permission_denied: Sorry, only administrators of this bot may %s. Tell the user so; trying again does not help."
	)
	trash, pdf, config := fmt.Sprintf(off, "gmail_trash"), fmt.Sprintf(off, "pdf_info"), fmt.Sprintf(admins, "load the tool group 'config'")
	// "made_up" is no tool, gmail_trash one of a loaded group that is switched off, pdf_info one of a
	// group that is switched off, and get_config one for administrators.
	for call, wants := range map[string]answers{
		`load_tool_group {"group_name":"nowhere"}`: inAll("not_found: Tool group 'nowhere' not found. Available groups: config, pdf, google_gmail"),
		`load_tool_group {"group_name":"pdf"}`:     inAll("empty_group: Tool group 'pdf' has no available tools."),
		`load_tool_group {"group_name":"config"}`:  inAll(config),

		`tool_describe {"name":"made_up"}`:     behindABridge("tool_describe", nothing),
		`tool_describe {"name":"gmail_trash"}`: behindABridge("tool_describe", trash),
		`tool_describe {"name":"pdf_info"}`:    behindABridge("tool_describe", pdf),
		`tool_describe {"name":"get_config"}`:  behindABridge("tool_describe", config),
		`tool_describe {"names":["made_up","gmail_trash","pdf_info","get_config"]}`: behindABridge("tool_describe", `: {"tools":{},"not_found":["made_up"],"errors":{`+
			`"get_config":"Sorry, only administrators of this bot may load the tool group 'config'. Tell the user so; trying again does not help.",`+
			`"gmail_trash":"Tool 'gmail_trash' is not available for this agent. It is switched off by an administrator.",`+
			`"pdf_info":"Tool 'pdf_info' is not available for this agent. It is switched off by an administrator."}`),

		`tool_call {"name":"made_up","arguments":{}}`:     behindABridge("tool_call", nothing),
		`tool_call {"name":"gmail_trash","arguments":{}}`: behindABridge("tool_call", trash),
		`tool_call {"name":"pdf_info","arguments":{}}`:    behindABridge("tool_call", pdf),
		`tool_call {"name":"get_config","arguments":{}}`:  behindABridge("tool_call", config),

		`made_up {}`:     inAll(nothing),
		`gmail_trash {}`: inAll(fmt.Sprintf(nowOff, "gmail_trash")),
		`pdf_info {}`:    {groups: pdf, search: pdf, all: fmt.Sprintf(nowOff, "pdf_info")},
		`get_config {}`:  inAll(config),
	} {
		for _, routing := range search.Routings() {
			c, _ := routed(t, routing)
			c.registry = restricted(t, c.registry)
			c.say("mail", calls(loads("l", "google_gmail")), calls("a "+call), says("ok"))
			want, ok := map[string]string{"groups": wants.groups, "search": wants.search, "all": wants.all}[c.last().Routing]
			got := c.result("a")
			if answer := got.Code + ": " + got.Text; !ok || !strings.HasPrefix(answer, want) {
				t.Errorf("%s: %s is answered %q, want %q", routing, call, answer, want)
			}
			if len(c.ran) > 0 {
				t.Errorf("%s: %s ran %v", routing, call, c.ran)
			}
		}
	}
}

func inAll(want string) answers {
	return answers{want, want, want}
}

// behindABridge is what the modes with a bridge answer; the others have no such tool.
func behindABridge(tool, want string) answers {
	none := "tool_not_found: Tool '" + tool + "' not found"
	return answers{none, want, none}
}

// restricted has gmail_trash and the group pdf switched off, and config for administrators.
func restricted(t testing.TB, reg *toolgroups.Registry) *toolgroups.Registry {
	t.Helper()
	cfg := toolgroups.RegistryConfig{Groups: reg.Groups(), DisabledTools: []string{"gmail_trash"}, DisabledGroups: []string{"pdf"}}
	for _, tool := range reg.Core() {
		if tool.Name != toolgroups.LoadToolGroup {
			cfg.Core = append(cfg.Core, tool)
		}
	}
	cfg.Groups[0].Role = toolgroups.RoleAdmin
	restricted, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return restricted
}

// The model is told of a loaded group where nothing but a longer name and what people
// say has its name in it.
func TestWordsThatHaveTheNameOfAGroupTellNothingOfIt(t *testing.T) {
	c, _ := routed(t, search.RoutingGroups)
	c.sayNarrow(capBelowCore, "a pdf", calls(loads("a", "pdf_forms")), says("no"))
	n := len(c.history)
	c.sayNarrow(capBelowCore, "x", calls(loads("b", "pdf")), says("ok"))
	for i := range c.history[n:] {
		c.history[n+i], _ = c.history[n+i].WithoutTexts([]string{"pdf"})
	}
	c.history = slices.DeleteFunc(c.history, func(m agent.Message) bool { return m.Role == "" })
	c.history = append([]agent.Message{{Role: agent.RoleSummary, Text: "They want a pdf."}}, c.history...)
	req := c.sayNarrow(capBelowCore, "y", says("ok")).requests[0]
	want := "[Loaded tool groups: pdf. They stay loaded. Not listed as tools of their own, but ready: " +
		"tool_describe(names) shows their parameters, tool_call(name, arguments) runs them: pdf_info.]"
	if last := req.Messages[len(req.Messages)-1]; last.Text != want {
		t.Errorf("the model is sent %q last, want %q", last.Text, want)
	}
}

// A reply that loads a group and calls its tool is not told to load the group, whichever way it calls.
func TestAReplyThatLoadsAGroupIsNotToldToLoadIt(t *testing.T) {
	for _, limit := range []int{0, capBelowCore} {
		for _, call := range []string{"b pdf_info {}", through("b", "pdf_info", `{}`)} {
			if limit == 0 && strings.Contains(call, "tool_call") {
				continue // has no such tool
			}
			c, _ := routed(t, search.RoutingGroups)
			c.sayNarrow(limit, "x", calls(call, loads("a", "pdf")), calls(strings.Replace(call, "b", "c", 1)), calls("d get_config {}", loads("e", "nowhere")), says("ok"))
			if got := c.result("b"); got.Code != toolgroups.CodeNotAvailable || got.Text != "Tool 'pdf_info' is not available for this agent. Its group is loaded now; call it again." {
				t.Errorf("at most %d, %s: %+v", limit, call, got)
			}
			if got := c.result("c"); got.Status != agent.StatusOK {
				t.Errorf("at most %d, %s: called again: %+v", limit, call, got)
			}
			if got := c.result("d"); !strings.Contains(got.Text, "Load its group first") {
				t.Errorf("at most %d, %s: of a group that nothing loads: %+v", limit, call, got)
			}
		}
	}
}

// Where every tool is in the array the prompt does not ask for loads; where some do not fit it does.
func TestThePromptAsksForLoadsOnlyWhereTheyAreNeeded(t *testing.T) {
	const order = "to load tools from a group before using them"
	for routing, fits := range map[search.Routing]bool{search.RoutingAll: true, search.RoutingGroups: false, search.RoutingAuto: true} {
		c, _ := routed(t, routing)
		c.turn.ContextTokens = 1_000_000
		system := c.say("x", says("ok")).requests[0].System
		if strings.Contains(system, order) == fits || strings.Contains(system, "listed already") != fits {
			t.Errorf("%s: %s", routing, system)
		}
	}
	c, _ := routed(t, search.RoutingAll)
	c.turn.ContextTokens = 4_000
	c.registry = padded(t, c.world, 12_000)
	if system := c.say("x", says("ok")).requests[0].System; !strings.Contains(system, order) {
		t.Errorf("with a small context: %s", system)
	}
}
