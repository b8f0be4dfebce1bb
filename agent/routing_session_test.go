package agent_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// What was decided holds for the session, after a restart with other tools and after a
// compaction too; another session decides anew.
func TestAutoIsDecidedOncePerSession(t *testing.T) {
	c, _ := routed(t, search.RoutingAuto)
	c.turn.ContextTokens = 10 * c.deferrableTokens()
	before := c.say("x", says("ok")).requests[0]
	other, _ := routed(t, search.RoutingAuto)
	other.turn.ContextTokens = 100_000
	other.history = c.history
	wantOffered(t, other.say("y", says("ok")).requests[0], offered(before))
	other.history = append(other.history, agent.Message{Role: agent.RoleUser, Text: "stop"})
	other.history = append(other.history, agent.StopMessages(other.history, agent.NoteStopped)...)
	wantOffered(t, other.say("go on", says(strings.Repeat("long ", 4000))).requests[0], offered(before))
	turn := other.turn
	turn.History, turn.Set = append(other.history, agent.Message{Role: agent.RoleUser, Text: "z"}), other.set(other.history)
	turn.Model = &script{t: t, replies: []agent.Reply{says("we talked")}}
	summary, done, err := other.agent.Compact(t.Context(), turn, 1000)
	if err != nil || !done {
		t.Fatalf("not summed up: %v", err)
	}
	other.history = []agent.Message{summary}
	wantOffered(t, other.say("z", says("ok")).requests[0], offered(before))
	fresh := *other
	fresh.history = nil
	if got := offered(fresh.say("new", says("ok")).requests[0]); slices.Contains(got, "tool_call") {
		t.Errorf("another session is offered %v", got)
	}
}

// served is the registry with the groups of two MCP servers, as the catalogue makes it
// anew from the same lists.
func served(t testing.TB, w *world) *toolgroups.Registry {
	t.Helper()
	cfg := toolgroups.RegistryConfig{Groups: w.registry.Groups()}
	for _, tool := range w.registry.Core() {
		if tool.Name != toolgroups.LoadToolGroup {
			cfg.Core = append(cfg.Core, tool)
		}
	}
	for _, server := range []string{"hub", "wiki"} {
		g := toolgroups.Group{Name: "mcp_" + server, Source: "mcp:" + server}
		for _, verb := range []string{"create", "get", "list"} {
			g.Tools = append(g.Tools, w.tool(server+"_"+verb, toolgroups.ReadOnly))
		}
		cfg.Groups = append(cfg.Groups, g)
	}
	reg, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// The tools array of a request begins with that of the one before, byte for byte,
// whatever is loaded, restored or summed up in between, and although the registry is made
// anew. Behind a bridge it does not change at all.
func TestToolsArrayOnlyGrows(t *testing.T) {
	t.Parallel()
	plain := newWorld(t).registry
	groups := []string{"mcp_hub", "mcp_wiki", "config", "pdf", "google_gmail", "google_drive", "google_calendar", "empty", "unknown"}
	rapid.Check(t, func(rt *rapid.T) {
		routing := rapid.SampledFrom(search.Routings()).Draw(rt, "routing")
		limit := rapid.SampledFrom([]int{0, 0, 4, 7, 8, 9, 10, 11, 12, 15, 200}).Draw(rt, "limit")
		c, _ := routed(t, routing, func(cfg *search.RouterConfig) {
			prices := rapid.SampledFrom([]search.Prices{{Write: 1, Read: 1}, {Write: 1.25, Read: 0.1}}).Draw(rt, "prices")
			cfg.Prices = func(string) search.Prices { return prices }
		})
		c.registry = served(t, c.world)
		c.turn.ContextTokens = rapid.SampledFrom([]int{0, c.deferrableTokens(), 10 * c.deferrableTokens(), 100_000}).Draw(rt, "context")
		var whole []agent.Message
		var before []byte
		for range rapid.IntRange(1, 6).Draw(rt, "turns") {
			replies := []agent.Reply{}
			for _, group := range rapid.SliceOfN(rapid.SampledFrom(groups), 0, 4).Draw(rt, "loads") {
				replies = append(replies, calls(loads("a", group), loads("b", rapid.SampledFrom(groups).Draw(rt, "beside"))))
			}
			s := &script{t: t, replies: append(replies, says("ok"))}
			turn := c.turn
			question := agent.Message{Role: agent.RoleUser, Text: "x"}
			whole, c.history = append(whole, question), append(c.history, question)
			turn.Model, turn.History, turn.Set = narrow{s, limit}, slices.Clone(c.history), c.set(whole)
			seen := len(c.history)
			if err := c.store(c.agent.Run(t.Context(), turn)); err != nil {
				rt.Fatal(err)
			}
			whole = append(whole, c.history[seen:]...)
			for _, req := range s.requests {
				array := toolgroups.EncodeTools(req.Tools)
				if len(before) > 0 && !bytes.HasPrefix(array, before[:len(before)-1]) {
					rt.Fatalf("%s\ncame after\n%s", array, before)
				}
				if len(before) > 0 && c.last().Routing == string(search.RoutingBridge) && !bytes.Equal(array, before) {
					rt.Fatalf("behind a bridge %s\ncame after\n%s", array, before)
				}
				before = array
			}
			if rapid.Bool().Draw(rt, "summed up") {
				c.history = []agent.Message{{Role: agent.RoleSummary, Text: "we talked", Routing: c.last().Routing}}
			}
			if rapid.Bool().Draw(rt, "restarted") {
				again, _ := routed(t, routing)
				c.turn.Router = again.turn.Router
				c.registry = plain
				c.registry = served(t, c.world)
			}
		}
	})
}
