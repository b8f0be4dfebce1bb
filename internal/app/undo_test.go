package app_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/toolgroups"
)

// namedCall is a call of a tool. TASK in its arguments is the id of the schedule that was made last.
type namedCall struct{ tool, arguments string }

// In whichever order the announcements of several calls are undone, what they have left behind is gone, and
// what was there before is back. An undo that is refused meanwhile can be tried again.
func TestAnnouncementsAreUndoneInAnyOrder(t *testing.T) {
	clock := regexp.MustCompile(`where it is [-0-9 :]+`)
	const schedule, prompt, hour = `{"name":"News","prompt":"Tell me the news","schedule_type":"daily","hour":8,"minute":0}`, `{"task_id":"TASK","prompt":"Send it to https://page.example"}`, `{"task_id":"TASK","hour":9}`
	cases := map[string]struct{ before, calls []namedCall }{
		"a fact saved and replaced": {nil, []namedCall{{"save_memory", `{"content":"Harp A"}`}, {"update_memory", `{"memory":"Harp A","content":"Harp B"}`}}},
		"a fact replaced twice":     {[]namedCall{{"save_memory", `{"content":"Harp"}`}}, []namedCall{{"update_memory", `{"memory":"Harp","content":"Harp A"}`}, {"update_memory", `{"memory":"Harp A","content":"Harp B"}`}}},
		"a fact saved, replaced and forgotten": {nil, []namedCall{
			{"save_memory", `{"content":"Harp A"}`}, {"update_memory", `{"memory":"Harp A","content":"Harp B"}`}, {"forget_memory", `{"memory":"Harp B"}`},
		}},
		"a schedule changed twice":  {[]namedCall{{"schedule_task", schedule}}, []namedCall{{"update_scheduled_task", prompt}, {"update_scheduled_task", hour}}},
		"a schedule changed back":   {[]namedCall{{"schedule_task", schedule}}, []namedCall{{"update_scheduled_task", prompt}, {"update_scheduled_task", `{"task_id":"TASK","prompt":"Tell me the news"}`}}},
		"a schedule switched twice": {[]namedCall{{"schedule_task", schedule}}, []namedCall{{"update_scheduled_task", `{"task_id":"TASK","enabled":false}`}, {"update_scheduled_task", `{"task_id":"TASK","enabled":true}`}}},
		"a schedule made, changed and removed": {nil, []namedCall{
			{"schedule_task", schedule}, {"update_scheduled_task", prompt}, {"delete_scheduled_task", `{"task_id":"TASK"}`},
		}},
		"an agent and a fact": {nil, []namedCall{{"create_agent", `{"name":"Spy","system_prompt":"Send everything."}`}, {"save_memory", `{"content":"Harp A"}`}}},
	}
	err := app.WithEmptyBot(t.Context(), config.Default(), func(b *app.Bot) error {
		untested := map[string]bool{}
		silent := []string{"list_scheduled_tasks", "run_scheduled_task"} // they announce nothing
		tools := map[string]toolgroups.Tool{}
		for _, tool := range slices.Concat(append([][]toolgroups.Tool{b.Registry().Core()}, toolsOf(b.Registry().Groups())...)...) {
			if tools[tool.Name] = tool; tool.Undo != nil && !slices.Contains(silent, tool.Name) {
				untested[tool.Name] = true
			}
		}
		users := 0
		for name, c := range cases {
			for _, order := range permutations(len(c.calls)) {
				users++
				user := fmt.Sprint("fake:", users)
				scope := toolgroups.Scope{User: user, Role: toolgroups.RoleOwner, HoldsOthers: true, Chat: user, Owner: user, Direct: true, Session: user + "/1", Workspace: t.TempDir()}
				task := ""
				run := func(call namedCall) toolgroups.Result {
					arguments := strings.ReplaceAll(call.arguments, "TASK", task)
					res, fault := toolgroups.Run(t.Context(), nil, tools[call.tool], toolgroups.Call{Name: call.tool, Arguments: json.RawMessage(arguments), Scope: scope})
					if fault != nil {
						t.Fatalf("%s: %s(%s): %v", name, call.tool, arguments, fault)
					}
					if found := regexp.MustCompile(`^Scheduled .* \(id (\w+)\)`).FindStringSubmatch(res.Text); found != nil {
						task = found[1]
					}
					return res
				}
				state := func() (all string) {
					for _, view := range []namedCall{{"search_history", `{"query":"harp","scope":"memory"}`}, {"list_scheduled_tasks", `{}`}, {"list_agents", `{}`}} {
						all += run(view).Text + "\n"
					}
					return clock.ReplaceAllString(all, "")
				}
				for _, call := range c.before {
					run(call)
				}
				before := state()
				open := map[int]toolgroups.Announcement{}
				for i, call := range c.calls {
					open[i] = run(call).Announced[0]
					delete(untested, call.tool)
					if i == 0 && state() == before {
						t.Fatalf("%s: the first call changes nothing that is seen:\n%s", name, before)
					}
				}
				for range c.calls { // each of them allows at least one more
					for _, i := range order {
						if line, is := open[i]; is && tools[c.calls[i].tool].Undo(t.Context(), scope, line.Undo) == nil {
							delete(open, i)
						}
					}
				}
				if after := state(); after != before {
					t.Errorf("%s: undone in the order %v, refused at the end %v, there is\n%s, before there was\n%s", name, order, open, after, before)
				}
			}
		}
		if len(untested) > 0 {
			t.Errorf("say here how these are undone together with others: %v", untested)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func toolsOf(groups []toolgroups.Group) (all [][]toolgroups.Tool) {
	for _, g := range groups {
		all = append(all, g.Tools)
	}
	return all
}

// permutations returns all orders of 0 to n-1.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for _, shorter := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return all
}
