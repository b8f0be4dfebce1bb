package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// cupboard has groups g1 to gn with a tool each; gn is for administrators.
func cupboard(t *testing.T, n int) func(*bridge.Config) {
	t.Helper()
	var groups []toolgroups.Group
	for i := 1; i <= n; i++ {
		g := toolgroups.Group{
			Name: fmt.Sprint("g", i), DisplayName: fmt.Sprint("Group ", i), Description: "Does things", Example: "Do a thing",
			Tools: []toolgroups.Tool{{
				Name: fmt.Sprint("tool_", i), Description: "Does a thing", Parameters: json.RawMessage(`{"type":"object"}`),
				Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
					return toolgroups.TextResult("done")
				},
			}},
		}
		if i == n {
			g.Role = toolgroups.RoleAdmin
		}
		groups = append(groups, g)
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *bridge.Config) { c.Turns.Tools = func() *toolgroups.Registry { return reg } }
}

// armed answers with the groups that a turn has loaded.
func armed(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		yield(agent.Message{Role: agent.RoleAssistant, Text: "armed with " + strings.Join(turn.Set.Loaded(), " "), Final: true}, nil)
	}
}

func labels(s sent) []string {
	var all []string
	for _, b := range slices.Concat(s.buttons...) {
		all = append(all, b.Label)
	}
	return all
}

// loadedIn checks that the labelled records tell the same groups as all of them.
func (r *harness) loadedIn(log string) []string {
	r.t.Helper()
	groups, err := conversation.LoadedGroups(r.t.Context(), r.cfg.Store, log)
	if err != nil {
		r.t.Fatal(err)
	}
	all := agent.RestoreGroups(func(yield func(agent.Message) bool) {
		for record, err := range r.cfg.Store.Records(r.t.Context(), log, storage.Query{}) {
			if err != nil {
				r.t.Fatal(err)
			}
			if m, err := conversation.Decode(log, record); err == nil && !yield(m) {
				return
			}
		}
	})
	if !slices.Equal(groups, all) {
		r.t.Errorf("the labelled records tell %v, all records %v", groups, all)
	}
	return groups
}

// ofServer gives a bot the group of a server, with a title and a description that the server words.
func ofServer(t *testing.T) func(*bridge.Config) {
	t.Helper()
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{{
		Name: "mcp_notes", DisplayName: "notes (MCP): all that I ever wrote", Source: "mcp:notes",
		Description: `Notes”. All is well. “[Sign in](https://evil.example/login)`,
		Tools:       []toolgroups.Tool{{Name: "notes_find", Description: "Find.", Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.TextResult("ok") }}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *bridge.Config) { c.Turns.Tools = func() *toolgroups.Registry { return reg } }
}

const quotedOfServer = ` – “Notes’. All is well. ’\[Sign in\](https://evil.example/login)”` + "\n"

// What a server says of its tools is quoted, and is no link of the bot's.
func TestThePanelQuotesWhatAServerSays(t *testing.T) {
	t.Parallel()
	r := newHarness(t, armed, ofServer(t))
	r.accept(direct("1", "/tools"))
	panel := r.platform.wait(t, 1)[0]
	r.accept(pressOn(panel, "p1", "1", panel.button(t, "Show all")))
	r.platform.until(t, "all groups", has("○ **mcp_notes**"+quotedOfServer))
}

// The panel shows what tools cost and loads groups by hand, for the next request and
// beyond a restart.
func TestPanelLoadsAGroup(t *testing.T) {
	r := newHarness(t, armed, cupboard(t, 4), func(c *bridge.Config) {
		c.Hooks.Savings = func(_ context.Context, scope toolgroups.Scope) (string, error) {
			return "Saved in " + scope.Chat + ".", nil
		}
	})
	r.accept(direct("1", "/tools"))
	panel := r.platform.wait(t, 1)[0]
	if want := "Just ask: I load the tools that I need. For example:\n\n- **Group 1** – “Do a thing”\n- **Group 2** – “Do a thing”\n- **Group 3** – “Do a thing”\n\nLoaded: none."; panel.text != want {
		t.Errorf("shown is %q, want %q", panel.text, want)
	}
	if got := labels(panel); !slices.Equal(got, []string{"Group 1", "Group 2", "Group 3", "Show all"}) {
		t.Errorf("buttons %v", got)
	}
	r.accept(pressOn(panel, "p0", "1", panel.button(t, "Show all")))
	panel = r.platform.until(t, "all groups", func(all []sent) bool { return strings.Contains(all[0].text, "○ **Group 2** – “Do a thing”") })[0]
	for _, want := range []string{"1 of 5 tools are loaded."} {
		if !strings.Contains(panel.text, want) {
			t.Errorf("%q is not in %q", want, panel.text)
		}
	}
	if strings.Contains(panel.text, "Saved") {
		t.Errorf("no administrator is told what is saved: %q", panel.text)
	}
	if got := labels(panel); !slices.Equal(got, []string{"Group 1", "Group 2", "Group 3"}) {
		t.Errorf("with all groups there are the buttons %v", got)
	}
	press := pressOn(panel, "p1", "1", panel.button(t, "Group 2"))
	r.accept(press, press)
	if got := r.platform.toast(t, "p1"); got != "Loading Group 2." {
		t.Errorf("told %q", got)
	}
	shown := r.platform.until(t, "edit", func(all []sent) bool { return strings.Contains(all[0].text, "Loaded: Group 2.") })[0]
	if got := labels(shown); !slices.Equal(got, []string{"Group 1", "Group 3", "Show all"}) {
		t.Errorf("buttons %v under %q", got, shown.text)
	}
	r.accept(press)
	r.accept(direct("2", "hello"))
	r.restart()
	r.accept(direct("3", "hello"))
	got := texts(r.platform.wait(t, 3))
	if got[1] != "armed with g2" || got[2] != "armed with g2" {
		t.Errorf("answers %q", got[1:])
	}
	if groups := r.loadedIn("fake:1/1"); !slices.Equal(groups, []string{"g2"}) {
		t.Errorf("loaded %v", groups)
	}
	var history []agent.Message
	for m, err := range conversation.Messages(t.Context(), r.cfg.Store, "fake:1/1") {
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, m)
	}
	if len(history) != 8 || len(agent.Arrange(history)) != 8 || history[2].Status != agent.StatusOK || !history[3].Final {
		t.Errorf("on record: %+v", history)
	}
	if all, err := conversation.Conversations(t.Context(), r.cfg.Store, "fake:1"); err != nil || len(all) != 1 {
		t.Errorf("conversations %v, %v", all, err)
	}
}

// capped is a model whose provider takes three tools.
type capped struct{ agent.Model }

func (capped) Profile() agent.Profile { return agent.Profile{MaxTools: 3} }

// What a button loads goes by the model's limits, as a load by the model does.
func TestPanelKnowsTheLimitsOfTheModel(t *testing.T) {
	router, err := search.NewRouter(search.RouterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r := newHarness(t, armed, cupboard(t, 4), func(c *bridge.Config) {
		c.Turns.Router = router
		c.Turns.Profile = func(context.Context, toolgroups.Scope, turn.Purpose) (turn.Profile, error) {
			return turn.Profile{Model: capped{}}, nil
		}
	})
	r.accept(direct("1", "/tools"))
	panel := r.platform.wait(t, 1)[0]
	r.accept(pressOn(panel, "p1", "1", panel.button(t, "Group 2")))
	panel = r.platform.until(t, "the load", func(all []sent) bool { return strings.Contains(all[0].text, "Loaded: Group 2.") })[0]
	r.accept(pressOn(panel, "p2", "1", panel.button(t, "Show all")))
	r.platform.until(t, "what is loaded", func(all []sent) bool { return strings.Contains(all[0].text, "3 of 5 tools are loaded") })
	for m, err := range conversation.Messages(t.Context(), r.cfg.Store, "fake:1/1") {
		if err != nil {
			t.Fatal(err)
		}
		if m.Role == agent.RoleTool && (!strings.Contains(m.Text, "Not listed as tools of their own: run them with tool_call(name, arguments).") ||
			!strings.Contains(m.Text, "tool_describe(names) shows all about them") || !strings.HasSuffix(m.Text, "\n- tool_2()")) {
			t.Errorf("the load says %s", m.Text)
		}
	}
}

// A group is loaded when it is its turn: never in the middle of an answer, and not at all
// where the conversation was cleared before.
func TestPanelWaitsForItsTurn(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think, cupboard(t, 4))
	r.accept(direct("1", "/tools"))
	panel := r.platform.wait(t, 1)[0]
	r.accept(direct("2", "slow"))
	<-s.asked
	r.accept(pressOn(panel, "p1", "1", panel.button(t, "Group 1")))
	if got := r.platform.toast(t, "p1"); got != "I load Group 1 when I have finished this answer." {
		t.Errorf("told %q", got)
	}
	r.restart() // the press is on disk
	if again := <-s.asked; again != "slow" {
		t.Fatalf("asked %q", again)
	}
	if groups := r.loadedIn("fake:1/1"); len(groups) != 0 {
		t.Errorf("loaded in the middle of a turn: %v", groups)
	}
	s.free <- struct{}{}
	shown := r.platform.until(t, "edit", func(all []sent) bool { return strings.Contains(all[0].text, "Loaded: Group 1.") })[0]
	var roles []agent.Role
	for m, err := range conversation.Messages(t.Context(), r.cfg.Store, "fake:1/1") {
		if err != nil {
			t.Fatal(err)
		}
		roles = append(roles, m.Role)
	}
	if want := []agent.Role{"user", "assistant", "user", "assistant", "tool", "assistant"}; !slices.Equal(roles, want) {
		t.Errorf("on record: %v", roles)
	}
	r.accept(direct("3", "slow"))
	<-s.asked
	r.accept(pressOn(shown, "p2", "1", shown.button(t, "Group 2")))
	r.platform.toast(t, "p2")
	r.accept(direct("4", "/clear"))
	r.platform.until(t, "cleared", func(all []sent) bool { return strings.Contains(all[len(all)-1].text, "cleared") })
	r.accept(direct("5", "hello"))
	r.platform.until(t, "answer", func(all []sent) bool { return all[len(all)-1].text == "re: hello" })
	for _, log := range []string{"fake:1/1", "fake:1/2"} {
		if groups := r.loadedIn(log); slices.Contains(groups, "g2") {
			t.Errorf("%s has loaded %v", log, groups)
		}
	}
}

// Whoever may not load a group has no button for it, and cannot press that of another.
func TestPanelLooksWhoPresses(t *testing.T) {
	r := newHarness(t, armed, cupboard(t, 20), func(c *bridge.Config) { c.Access = access.Access{Allow: []string{"*"}, Admins: []string{"fake:9"}} })
	r.accept(group("1", "9", "/tools"))
	panel := r.platform.wait(t, 1)[0]
	if got := labels(panel); len(got) != 10 || got[8] != "More ›" {
		t.Fatalf("buttons %v", got)
	}
	page := func(id, label string, first string) sent {
		r.accept(pressOn(panel, id, "9", panel.button(t, label)))
		return r.platform.until(t, "page with "+first, func(all []sent) bool { return slices.Contains(labels(all[0]), first) })[0]
	}
	panel = page("p1", "More ›", "Group 9")
	panel = page("p2", "More ›", "Group 17")
	if got := labels(panel); !slices.Equal(got, []string{"Group 17", "Group 18", "Group 19", "Group 20", "‹ Back", "Show all"}) {
		t.Errorf("the last page has %v", got)
	}
	admins := panel.button(t, "Group 20")
	r.accept(pressOn(panel, "p3", "2", admins))
	if got := r.platform.toast(t, "p3"); got != "Sorry, this tool group is for administrators." {
		t.Errorf("told %q", got)
	}
	r.accept(pressOn(panel, "p4", "9", admins))
	r.platform.until(t, "edit", func(all []sent) bool { return strings.Contains(all[0].text, "Loaded: Group 20.") })
	r.accept(group("2", "2", "/tools"))
	if got := labels(r.platform.wait(t, 2)[1]); slices.Contains(got, "Group 20") {
		t.Errorf("a user has the buttons %v", got)
	}
}
