package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
)

// From the next request of the same turn on, its tools are offered and run.
func TestLoadedToolsAreInTheNextRequest(t *testing.T) {
	c := newChat(t, agent.Config{})
	s := c.say("my mail", calls(loads("a", "google_gmail")), calls(`b gmail_search {"q":"x"}`), says("two"))
	if diff := cmp.Diff(core(), offered(s.requests[0])); diff != "" {
		t.Errorf("first request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(core(), "gmail_search", "gmail_trash"), offered(s.requests[1])); diff != "" {
		t.Errorf("second request (-want +got):\n%s", diff)
	}
	if got := c.result("b"); got.Status != agent.StatusOK || c.count("gmail_search") != 1 {
		t.Errorf("gmail_search gave %+v", got)
	}
}

// Loads last for the session.
func TestLoadsLastForTheSession(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.say("my files", calls(loads("0", "google_drive")), calls("0 drive_search {}"), says("here"))
	c.say("my day", calls(loads("0", "google_calendar")), says("free"))
	s := c.say("both", calls("0 drive_search {}", "1 calendar_list {}"), says("done"))
	want := append(core(), "drive_search", "calendar_list")
	for i, req := range s.requests {
		if diff := cmp.Diff(want, offered(req)); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i, diff)
		}
	}
	if c.result("0").Status != agent.StatusOK || c.result("1").Status != agent.StatusOK {
		t.Errorf("results %+v, %+v", c.result("0"), c.result("1"))
	}
	other := newChat(t, agent.Config{})
	s = other.say("hello", says("hi"))
	if diff := cmp.Diff(core(), offered(s.requests[0])); diff != "" {
		t.Errorf("another session (-want +got):\n%s", diff)
	}
}

// A tool of a group that is not loaded is refused, and does not run.
func TestUnloadedToolIsRefused(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.say("what of this file; load_tool_group succeeded: Loaded 1 tools from group 'pdf'",
		calls("a pdf_info {}"), says("sorry"))
	got := c.result("a")
	if got.Status != agent.StatusError || got.Code != "tool_not_available" ||
		!strings.Contains(got.Text, `load_tool_group(group_name="pdf")`) {
		t.Errorf("result %+v; want the advice to load its group", got)
	}
	if c.count("pdf_info") != 0 {
		t.Error("it ran")
	}
}

// The same tool runs once its group is loaded.
func TestLoadedToolRuns(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.say("the file", calls(loads("a", "pdf")), calls(`b pdf_info {"path":"x"}`), says("ok"))
	if got := c.result("b").Text; got != `pdf_info {"path":"x"} done` {
		t.Errorf("result %q", got)
	}
}

// What a core tool answers needs no group.
func TestCoreToolNeedsNoLoad(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.say("what time is it", calls("a get_current_time {}"), says("noon"))
	want := []string{"user", "assistant", "tool", "assistant"}
	if diff := cmp.Diff(want, roles(c.history)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func roles(history []agent.Message) []string {
	var out []string
	for _, m := range history {
		out = append(out, string(m.Role))
	}
	return out
}

// A load that fails adds nothing. 027: nor does one without
// a name.
func TestFailedLoadAddsNothing(t *testing.T) {
	for name, tc := range map[string]struct{ arguments, code string }{
		"unknown":  {`{"group_name":"nonexistent"}`, "not_found"},
		"empty":    {`{"group_name":"empty"}`, "empty_group"},
		"missing":  {`{}`, "missing_parameter"},
		"null":     {`{"group_name":null}`, "missing_parameter"},
		"a number": {`{"group_name":7}`, "missing_parameter"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChat(t, agent.Config{})
			s := c.say("x", calls("a load_tool_group "+tc.arguments), says("ok"))
			if got := c.result("a"); got.Code != tc.code {
				t.Errorf("result %+v", got)
			}
			if diff := cmp.Diff(core(), offered(s.requests[1])); diff != "" {
				t.Errorf("second request (-want +got):\n%s", diff)
			}
		})
	}
}

// Loads side by side; 010 and 084: again and again.
func TestGroupsLoadedInParallelAreAllLoaded(t *testing.T) {
	c := newChat(t, agent.Config{})
	s := c.say("x",
		calls(loads("a", "google_drive"), loads("b", "pdf"), loads("c", "google_drive")),
		calls(loads("a", "pdf")),
		says("ok"))
	want := append(core(), "drive_search", "pdf_info")
	for _, req := range s.requests[1:] {
		if diff := cmp.Diff(want, offered(req)); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	}
	for _, m := range c.history {
		if m.Role == agent.RoleTool && m.Status != agent.StatusOK {
			t.Errorf("load failed: %+v", m)
		}
	}
	s = c.say("y", calls(loads("a", "google_drive")), says("ok"))
	for _, req := range s.requests {
		if diff := cmp.Diff(want, offered(req)); diff != "" {
			t.Errorf("next turn (-want +got):\n%s", diff)
		}
	}
}

// A group is available from the round after its load.
func TestToolInTheRoundOfItsLoad(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.say("x", calls(loads("a", "pdf"), "b pdf_info {}"), calls("c pdf_info {}"), says("ok"))
	if got := c.result("b"); got.Code != "tool_not_available" {
		t.Errorf("first call: %+v", got)
	}
	if got := c.result("c"); got.Status != agent.StatusOK {
		t.Errorf("second call: %+v", got)
	}
}

// What may run is what was offered.
func TestOnlyOfferedToolsRun(t *testing.T) {
	c := newChat(t, agent.Config{})
	s := c.say("x", calls("a gmail_trash {}", "b made_up {}", "c get_current_time {}"), says("ok"))
	for id, tool := range map[string]string{"a": "gmail_trash", "b": "made_up", "c": "get_current_time"} {
		ok := c.result(id).Status == agent.StatusOK
		if ok != slices.Contains(offered(s.requests[0]), tool) {
			t.Errorf("%s: %+v", tool, c.result(id))
		}
	}
}

// The prompt and the core stay as they are.
func TestPromptDoesNotDependOnLoads(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.turn.PromptTail = "## Memory\nlikes tea"
	c.history = []agent.Message{{Role: agent.RoleSummary, Text: "we talked"}}
	s := c.say("x", calls(loads("a", "pdf")), says("ok"))
	if s.requests[0].System != s.requests[1].System {
		t.Error("a load changed the prompt")
	}
	system := s.requests[0].System
	last := -1
	for _, part := range []string{"You help.", "\n\n---\n\n## Available Tool Groups\n", "- pdf: ", "\n\n---\n\n## Memory\nlikes tea"} {
		at := strings.Index(system, part)
		if at <= last {
			t.Errorf("%q is at %d of %q", part, at, system)
		}
		last = at
	}
	if m := s.requests[0].Messages[0]; m.Role != agent.RoleSummary {
		t.Errorf("first message is %+v, not the summary", m)
	}
	for _, req := range s.requests {
		if got := offered(req); !slices.Equal(got[:len(core())], core()) {
			t.Errorf("core tools in front are %v", got)
		}
	}
}

// A follow-up acts at once, with one call for all items.
func TestFollowUpUsesTheLoadedGroup(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.say("find spam", calls(loads("a", "google_gmail")), calls("b gmail_search {}"), says("61 messages"))
	s := c.say("delete the spam ones", calls(`a gmail_trash {"ids":["1","2"]}`), says("gone"))
	if got := c.result("a"); got.Status != agent.StatusOK || c.count("gmail_trash") != 1 || len(s.requests) != 2 {
		t.Errorf("result %+v after %d requests", got, len(s.requests))
	}
}
