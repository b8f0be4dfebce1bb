package background_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/background"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// tasks stands for the bridge.
type tasks struct{ all []toolgroups.BackgroundTask }

func (b *tasks) StartTask(_ context.Context, _ toolgroups.Call, task toolgroups.BackgroundTask) (toolgroups.BackgroundTask, error) {
	task.ID, task.Open, task.State, task.Began = "bg-1", true, "is running", now.Add(-time.Minute)
	b.all = append(b.all, task)
	return task, nil
}

func (b *tasks) Tasks(toolgroups.Call) ([]toolgroups.BackgroundTask, error) {
	return slices.DeleteFunc(slices.Clone(b.all), func(t toolgroups.BackgroundTask) bool { return !t.Open }), nil
}

func (b *tasks) Task(_ context.Context, _ toolgroups.Call, id string) (t toolgroups.BackgroundTask, known bool, err error) {
	i := slices.IndexFunc(b.all, func(t toolgroups.BackgroundTask) bool { return t.ID == id })
	if i < 0 {
		return t, false, nil
	}
	return b.all[i], true, nil
}

func (b *tasks) CancelTask(ctx context.Context, call toolgroups.Call, id string) (toolgroups.BackgroundTask, bool, error) {
	task, known, err := b.Task(ctx, call, id)
	if known {
		b.all[0].Open, b.all[0].State = false, "was cancelled"
	}
	return task, known, err
}

func TestTools(t *testing.T) {
	t.Parallel()
	var registry *toolgroups.Registry
	running := &tasks{}
	group, err := background.Group(background.Config{
		Tasks: func() background.Tasks { return running }, Now: func() time.Time { return now },
		Registry: func() *toolgroups.Registry { return registry },
		FindModel: func(_ context.Context, name string) (string, error) {
			if name == "huge" {
				return "", toolgroups.Errorf(toolgroups.CodeInvalid, "There is no model 'huge' here.")
			}
			return "preset/" + name, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	registry, err = toolgroups.NewRegistry(toolgroups.RegistryConfig{
		Groups:         []toolgroups.Group{{Name: "config", Role: toolgroups.RoleAdmin}, {Name: "pdf"}, {Name: "off"}, group},
		DisabledGroups: []string{"off"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, arguments, want string }{
		{"start_background_task", `{"task": "  "}`, "'task' is blank."},
		{"start_background_task", `{"task": "` + strings.Repeat("x", 16_001) + `"}`, "'task' has 16001 characters, at most 16000."},
		{"start_background_task", `{"task": "x", "groups": ["nonsense"]}`, "There is no tool group 'nonsense' for a background task. Groups: config, pdf, off. Nothing was started."},
		{"start_background_task", `{"task": "x", "groups": ["background"]}`, "There is no tool group 'background' for a background task."},
		{"start_background_task", `{"task": "x", "groups": ["config"]}`, "The tool group 'config' is for administrators. Nothing was started."},
		{"start_background_task", `{"task": "x", "groups": ["off"]}`, "The tool group 'off' is switched off by an administrator. Nothing was started."},
		{"start_background_task", `{"task": "x", "groups": ["a","b","c","d","e","f"]}`, "'groups' has 6 names, at most 5"},
		{"start_background_task", `{"task": "x", "model": "huge"}`, "There is no model 'huge' here."},
		{"list_background_tasks", `{}`, "No background task is open in this chat."},
		{"wait_background_tasks", `{}`, "No background task is open in this chat any more.\nEach result comes as a message of its own, now or after your answer."},
		{"wait_background_tasks", `{"task_ids": ["bg-9"]}`, "There is no background task with the id 'bg-9' in this chat. Open: none."},
		{"start_background_task", `{"task": " read it ", "title": "Read", "groups": ["pdf", "", " pdf"], "model": "small"}`, "Started 'Read' (id bg-1)."},
		{"list_background_tasks", `{}`, "'Read' (id bg-1) is running, started 1m0s ago"},
		{"wait_background_tasks", `{"task_ids": ["bg-1"]}`, "You do not wait for what is still open, because a message has come."},
		{"cancel_background_task", `{"task_id": "bg-9"}`, "There is no background task with the id 'bg-9' in this chat. Open: bg-1."},
		{"cancel_background_task", `{"task_id": "bg-1"}`, "Cancelled 'Read' (id bg-1)."},
		{"cancel_background_task", `{"task_id": "bg-1"}`, "'Read' was cancelled already."},
	} {
		tool, _ := registry.Tool(c.tool)
		got := run(tool, c.arguments, toolgroups.Scope{Role: toolgroups.RoleUser})
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %.60s: %q, want %q", c.tool, c.arguments, got, c.want)
		}
	}
	if task := running.all[0]; len(running.all) != 1 || task.Text != "read it" || task.Model != "preset/small" || !slices.Equal(task.Groups, []string{"pdf"}) {
		t.Errorf("started %+v", running.all)
	}
	if _, has := registry.ForTasks().Group("background"); has || strings.Contains(registry.ForTasks().Listing(), "background") {
		t.Error("a task is offered the group")
	}
}

func run(tool toolgroups.Tool, arguments string, scope toolgroups.Scope) string {
	result, fault := toolgroups.Run(context.Background(), nil, tool, toolgroups.Call{Name: tool.Name, Arguments: json.RawMessage(arguments), Scope: scope})
	if fault != nil {
		return fault.Message
	}
	return result.Text
}
