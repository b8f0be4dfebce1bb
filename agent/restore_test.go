package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

func asked(list ...string) agent.Message {
	return agent.Message{Role: agent.RoleAssistant, Calls: calls(list...).Calls}
}

func gave(id, tool string, status agent.Status) agent.Message {
	return agent.Message{Role: agent.RoleTool, CallID: id, Tool: tool, Status: status}
}

func loaded(id string) agent.Message { return gave(id, "load_tool_group", agent.StatusOK) }

func TestRestoreGroups(t *testing.T) {
	failed := func(id string) agent.Message { return gave(id, "load_tool_group", agent.StatusError) }
	user := func(text string) agent.Message { return agent.Message{Role: agent.RoleUser, Text: text} }
	for name, tc := range map[string]struct {
		history []agent.Message
		want    []string
	}{
		"empty": {},
		"success and error": {
			[]agent.Message{asked(loads("a", "google_gmail"), loads("b", "google_drive")), failed("b"), loaded("a")},
			[]string{"google_gmail"},
		},
		"no result": {
			[]agent.Message{asked(loads("a", "pdf")), {Role: agent.RoleStarted, CallID: "a", Tool: "load_tool_group"}, user("x")}, nil,
		},
		"unknown status": {
			[]agent.Message{asked(loads("a", "pdf")), gave("a", "load_tool_group", "timeout"), gave("a", "load_tool_group", "")}, nil,
		},
		"five times": {
			slices.Repeat([]agent.Message{asked(loads("a", "pdf")), loaded("a")}, 5), []string{"pdf"},
		},
		"malformed arguments": {
			[]agent.Message{
				asked("a load_tool_group nonsense", `b load_tool_group ["pdf"]`, `c load_tool_group {"name":"pdf"}`,
					`d load_tool_group {"group_name":["pdf"]}`, "e load_tool_group ", loads("f", "config"), `g load_tool_group {"group_name":""}`),
				loaded("a"), loaded("b"), loaded("c"), loaded("d"), loaded("e"), loaded("f"), loaded("g"),
			},
			[]string{"config"},
		},
		"results without calls, other tools": {
			[]agent.Message{
				loaded("a"), asked(`a read_file {"group_name":"pdf"}`), gave("a", "read_file", agent.StatusOK), loaded("b"),
			}, nil,
		},
		"quoted by the user": {
			[]agent.Message{user(`load_tool_group {"group_name":"pdf"}: Loaded 1 tools from group 'PDF Tools'`), loaded("a")}, nil,
		},
		"the call's name, not the result's": {
			[]agent.Message{
				asked(loads("a", "pdf")),
				{Role: agent.RoleTool, CallID: "a", Tool: "load_tool_group", Status: agent.StatusOK, Text: "Loaded 3 tools from group 'config'"},
			},
			[]string{"pdf"},
		},
		"records of before": {
			[]agent.Message{user("x"), asked(loads("0", "pdf")), loaded("0"), {Role: agent.RoleAssistant, Text: "ok"}}, []string{"pdf"},
		},
		"in front of a summary": {
			[]agent.Message{asked(loads("a", "pdf")), loaded("a"), {Role: agent.RoleSummary, Text: "s"}, user("x")}, []string{"pdf"},
		},
		"order of calls": {
			[]agent.Message{
				asked(loads("a", "pdf"), loads("b", "config")), loaded("b"), loaded("a"), asked(loads("a", "google_drive")), loaded("a"),
			},
			[]string{"pdf", "config", "google_drive"},
		},
		"ids from zero in every reply": {
			[]agent.Message{
				asked(loads("0", "pdf")), failed("0"), asked(`0 read_file {}`), gave("0", "read_file", agent.StatusOK),
				asked(loads("0", "config")), loaded("0"),
			},
			[]string{"config"},
		},
		"an id twice in one reply": {
			[]agent.Message{asked(loads("0", "pdf"), loads("0", "config")), loaded("0"), loaded("0")}, []string{"pdf", "config"},
		},
		"a result behind the next reply": {
			[]agent.Message{asked(loads("a", "pdf")), asked("b read_file {}"), loaded("a")}, nil,
		},
		"through a bridge call": {
			[]agent.Message{
				{Role: agent.RoleAssistant, Calls: []agent.Call{{
					ID: "a", Name: "tool_call", Arguments: `{"group_name":"config"}`, Tool: "load_tool_group", Input: `{"group_name":"pdf"}`,
				}}},
				loaded("a"),
			},
			[]string{"pdf"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, agent.RestoreGroups(slices.Values(tc.history))); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if name == "a result behind the next reply" {
				return // The agent never writes one, and the labels could not tell.
			}
			if diff := cmp.Diff(tc.want, agent.RestoreGroups(slices.Values(labelled(tc.history)))); diff != "" {
				t.Errorf("from the labelled records (-want +got):\n%s", diff)
			}
		})
	}
}

func labelled(history []agent.Message) []agent.Message {
	return slices.DeleteFunc(slices.Clone(history), func(m agent.Message) bool { return m.Label() != agent.LabelLoad })
}

// A group that is gone adds nothing and breaks nothing.
func TestGroupIsGone(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.history = []agent.Message{
		{Role: agent.RoleUser, Text: "x"},
		asked(loads("a", "gone"), loads("b", "pdf")), loaded("a"), loaded("b"),
		{Role: agent.RoleAssistant, Text: "ok", Final: true},
	}
	s := c.say("y", says("z"))
	if diff := cmp.Diff(append(core(), "pdf_info"), offered(s.requests[0])); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// histories are what logs may hold: ids that repeat, results in any order, late,
// missing or failed, arguments that cannot be read, messages that joined a turn.
func histories() *rapid.Generator[[]agent.Message] {
	return rapid.Custom(func(t *rapid.T) []agent.Message {
		var out []agent.Message
		for range rapid.IntRange(0, 12).Draw(t, "messages") {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				out = append(out, agent.Message{Role: agent.RoleUser, Text: fmt.Sprintf("user %d", len(out)), Ref: "r"})
			case 1:
				out = append(out, agent.Message{Role: agent.RoleAssistant, Text: rapid.SampledFrom([]string{"", "text"}).Draw(t, "text"), Final: true})
			case 2:
				out = append(out, agent.Message{Role: agent.RoleSummary, Text: "summary"})
			default:
				out = append(out, exchanges(t)...)
			}
		}
		asked := slices.IndexFunc(out, func(m agent.Message) bool { return m.Role == agent.RoleUser })
		for i := asked + 1; asked >= 0 && i < len(out); i++ {
			if m := &out[i]; m.Role == agent.RoleUser && rapid.IntRange(0, 2).Draw(t, "joined") == 0 {
				m.Ref, m.JoinedRef = "", "j"
			}
		}
		return out
	})
}

// exchanges is a reply with calls and what became of them.
func exchanges(t *rapid.T) []agent.Message {
	m := agent.Message{Role: agent.RoleAssistant}
	var rest []agent.Message
	for range rapid.IntRange(1, 4).Draw(t, "calls") {
		c := agent.Call{
			ID:        rapid.SampledFrom([]string{"0", "1", "2", "3", "4"}).Draw(t, "id"),
			Name:      rapid.SampledFrom([]string{"load_tool_group", "load_tool_group", "read_file", "tool_call"}).Draw(t, "name"),
			Arguments: rapid.SampledFrom([]string{`{"group_name":"pdf"}`, `{"group_name":"config"}`, `{"group_name":7}`, `{`, ``, `[]`}).Draw(t, "arguments"),
		}
		if c.Name == "tool_call" {
			c.Tool, c.Input = "load_tool_group", `{"group_name":"google_drive"}`
		}
		m.Calls = append(m.Calls, c)
		if rapid.Bool().Draw(t, "started") {
			rest = append(rest, agent.Message{Role: agent.RoleStarted, CallID: c.ID, Tool: c.EffectiveTool()})
		}
		if rapid.IntRange(0, 3).Draw(t, "ended") > 0 {
			rest = append(rest, agent.Message{
				Role: agent.RoleTool, CallID: c.ID, Tool: c.EffectiveTool(), Text: strings.Repeat("result ", rapid.IntRange(0, 400).Draw(t, "size")),
				Status: rapid.SampledFrom([]agent.Status{agent.StatusOK, agent.StatusError, "pending"}).Draw(t, "status"),
			})
		}
	}
	rest = rapid.Permutation(rest).Draw(t, "order")
	if rapid.IntRange(0, 5).Draw(t, "interrupted by the user") == 0 {
		at := rapid.IntRange(0, len(rest)).Draw(t, "at")
		rest = slices.Insert(rest, at, agent.Message{Role: agent.RoleUser, Text: "wait"})
	}
	return append([]agent.Message{m}, rest...)
}

func TestLabelsAreEnoughToRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := histories().Draw(t, "history")
		all := agent.RestoreGroups(slices.Values(history))
		some := agent.RestoreGroups(slices.Values(labelled(history)))
		if diff := cmp.Diff(all, some); diff != "" {
			t.Errorf("labelled records (-all +labelled):\n%s", diff)
		}
	})
}

// What a set holds at the end of a conversation is what its history restores.
func TestRestoreGivesWhatWasLoaded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChat(t, agent.Config{})
		var replies []agent.Reply
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			var list []string
			for i := range rapid.IntRange(1, 4).Draw(rt, "calls") {
				group := rapid.SampledFrom([]string{"pdf", "config", "google_drive", "unknown", "empty", " google_gmail "}).Draw(rt, "group")
				list = append(list, loads(fmt.Sprint(i), group))
			}
			replies = append(replies, calls(list...))
		}
		set := toolgroups.NewSet(func() *toolgroups.Registry { return c.registry }, nil)
		c.turn.Set, c.turn.Model = set, &script{t: t, replies: append(replies, says("ok"))}
		c.turn.History = []agent.Message{{Role: agent.RoleUser, Text: "x"}}
		if err := c.store(c.agent.Run(t.Context(), c.turn)); err != nil {
			rt.Fatal(err)
		}
		if got, want := agent.RestoreGroups(slices.Values(c.history)), set.Loaded(); !slices.Equal(got, want) {
			rt.Errorf("restored %v, loaded %v", got, want)
		}
	})
}

// TestLoadedGroupsNeverExpire restores a load of ten years ago.
//
// Sessions share no groups; nothing unloads or expires.
func TestLoadedGroupsNeverExpire(t *testing.T) {
	old := []agent.Message{asked(loads("a", "pdf")), loaded("a")}
	for i := range old {
		old[i].Time = time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if got := agent.RestoreGroups(slices.Values(old)); !slices.Equal(got, []string{"pdf"}) {
		t.Errorf("restored %v, want pdf", got)
	}
}

// TestRestoringIsBounded counts what restoring allocates: it must not grow
// with the messages that load nothing.
//
// Long histories restore in bounded work, without network.
func TestRestoringIsBounded(t *testing.T) {
	history := []agent.Message{asked(loads("0", "google_gmail")), loaded("0")}
	restore := func() float64 {
		return testing.AllocsPerRun(5, func() {
			if got := agent.RestoreGroups(slices.Values(history)); len(got) != 1 {
				t.Fatalf("restored %v", got)
			}
		})
	}
	short := restore()
	for len(history) < 10_000 {
		history = append(history, turns(1)...)
	}
	if long := restore(); long > short+10 {
		t.Errorf("10,000 messages allocate %.0f times, two messages %.0f times", long, short)
	}
}
