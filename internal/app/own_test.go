package app_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/toolgroups"
)

// mark stands in every text that is stored.
const mark = "zanzibar"

// What a result says counts as the program's own words if its tool says so, and then nothing asks. So such a
// result repeats nothing that another call, another person or a server has stored.
func TestAResultThatCountsAsTheProgramsOwnRepeatsNothingStored(t *testing.T) {
	err := app.WithEmptyBot(t.Context(), config.Default(), func(b *app.Bot) error {
		all := slices.Clone(b.Registry().Core())
		for _, g := range b.Registry().Groups() {
			all = append(all, g.Tools...)
		}
		scope := toolgroups.Scope{User: "fake:1", Role: toolgroups.RoleOwner, Chat: "fake:1", Owner: "fake:1", Direct: true, Session: "fake:1/1", Message: "1", Workspace: t.TempDir()}
		run := func(name, arguments string) (toolgroups.Result, *toolgroups.Error) {
			tool := all[slices.IndexFunc(all, func(t toolgroups.Tool) bool { return t.Name == name })]
			res, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{ID: "1", Name: name, Arguments: json.RawMessage(arguments), Scope: scope})
			return res, fault
		}
		ids := map[string]string{}
		for _, made := range []struct{ id, tool, arguments string }{
			{"AGENT", "create_agent", `{"name":"zanzibar","description":"zanzibar","system_prompt":"zanzibar"}`},
			{"PROVIDER", "create_provider", `{"name":"zanzibar","type":"OPENAI","api_base_url":"https://zanzibar.example/v1"}`},
			{"", "add_model", `{"provider_id":"PROVIDER","model_id":"zanzibar","name":"zanzibar"}`},
			{"", "manage_env_var", `{"action":"set","key":"ZANZIBAR","value":"x"}`},
			{"", "set_config", `{"key":"default_model","value":"PROVIDER/zanzibar"}`},
			{"TASK", "schedule_task", `{"name":"zanzibar","prompt":"zanzibar","schedule_type":"daily","hour":9,"minute":0}`},
		} {
			res, fault := run(made.tool, replaceIDs(made.arguments, ids))
			if fault != nil {
				t.Errorf("%s: %v", made.tool, fault)
			}
			ids[made.id] = regexp.MustCompile(`\bid (\S+?)[).]`).FindStringSubmatch(res.Text + " id none.")[1]
		}
		// What the person or the model has just said is theirs: no mark stands in the arguments.
		calls := map[string]string{
			"get_current_time": `{}`,
			"write_file":       `{"path":"a.txt","content":"b"}`,
			"write_document":   `{"path":"a.docx","content":"b"}`,
			"create_agent":     `{"name":"other","system_prompt":"other"}`,
			"create_provider":  `{"name":"other","type":"OPENAI","api_base_url":"https://other.example/v1"}`,
			"add_model":        `{"provider_id":"PROVIDER","model_id":"other"}`,
			"set_config":       `{"key":"default_model","value":"default"}`,
			"schedule_task":    `{"name":"other","prompt":"other","schedule_type":"daily","hour":9,"minute":0}`,
			"create_js_tool":   ``, // the name that the call says, as the next two

			"update_js_tool":        ``,
			"delete_js_tool":        ``,
			"set_tool_enabled":      `{"type":"tool","name":"js_eval","enabled":false}`,
			"delete_model":          `{"provider_id":"PROVIDER","model_id":"other"}`,
			"start_background_task": ``, // the title and the id of a new task
			"save_memory":           ``, // facts that others may have worded have another origin, as in the next two

			"ask_user":      ``, // what the person answers; what holds words of others has another origin
			"update_memory": ``,
			"forget_memory": ``,
		}
		for _, tool := range all {
			if tool.Origin != toolgroups.OriginOwn || tool.Personal { // those of Google say what ids and labels a mail has
				continue
			}
			arguments, known := calls[tool.Name]
			delete(calls, tool.Name)
			if !known {
				t.Errorf("%s: say here how it is called, or that what it says is not the program's own", tool.Name)
			}
			if arguments == "" {
				continue
			}
			switch res, fault := run(tool.Name, replaceIDs(arguments, ids)); {
			case fault != nil:
				t.Errorf("%s: %v", tool.Name, fault)
			case strings.Contains(strings.ToLower(res.Text), mark):
				t.Errorf("%s is said to be the program's own words, and repeats what is stored: %s", tool.Name, res.Text)
			}
		}
		// What says nothing of its origin brings words from outside, and repeats nothing that the program has stored.
		outside := []string{"search_web", "load_skill", toolgroups.LoadToolGroup, "fetch_models"}
		for _, tool := range all {
			if tool.Origin == "" && !tool.Fetches && !tool.Personal && !slices.Contains(outside, tool.Name) {
				t.Errorf("%s: say whether its results are the program's own words or computed, or here that they are of others", tool.Name)
			}
		}
		if len(calls) > 0 {
			t.Errorf("not the program's own words any more: %v", slices.Sorted(maps.Keys(calls)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func replaceIDs(arguments string, ids map[string]string) string {
	for name, id := range ids {
		if name != "" {
			arguments = strings.ReplaceAll(arguments, name, id)
		}
	}
	return arguments
}
