package google

import (
	"testing"

	"oneclaw/toolgroups/google/service"
)

func TestTasks(t *testing.T) {
	const one = `{"id":"t1","title":"buy milk","status":"needsAction"}`
	runSteps(t, []step{
		{
			name: "lists, over two pages", tool: "tasks_list_tasklists", args: `{}`,
			replies: map[string][]string{"GET /tasks/v1/users/@me/lists": {
				`{"items":[{"id":"a","title":"A"}],"nextPageToken":"p2"}`, `{"items":[{"id":"b","title":"B"}]}`,
			}},
			requests: []string{
				"GET /tasks/v1/users/@me/lists?alt=json&maxResults=100&prettyPrint=false",
				"GET /tasks/v1/users/@me/lists?alt=json&maxResults=100&pageToken=p2&prettyPrint=false",
			},
			result: `{"tasklists":[{"id":"a","title":"A"},{"id":"b","title":"B"}]}`,
		},
		{
			name: "finished tasks stay away unless asked for", tool: "tasks_list_tasks", args: `{"tasklist_id":"a","max_results":1}`,
			replies: map[string][]string{"GET /tasks/v1/lists/a/tasks": {`{"items":[` + one + `],"nextPageToken":"p2"}`}},
			requests: []string{
				"GET /tasks/v1/lists/a/tasks?alt=json&maxResults=1&prettyPrint=false&showCompleted=false&showHidden=false",
			},
			result: `{"tasks":[` + one + `],"more":true}`,
		},
		{
			name: "subtask on a day", tool: "tasks_create_task",
			args:     `{"tasklist_id":"@default","title":"buy milk","due":"2026-03-31","parent":"t0"}`,
			replies:  map[string][]string{"POST /tasks/v1/lists/@default/tasks": {one}},
			requests: []string{`POST /tasks/v1/lists/%40default/tasks?alt=json&parent=t0&prettyPrint=false {"due":"2026-03-31T00:00:00Z","title":"buy milk"}` + "\n"},
			result:   one,
		},
		{
			// Google makes UTC of it before it drops the clock: the day before.
			name: "at a time of a day that is another one in UTC", tool: "tasks_create_task",
			args:     `{"tasklist_id":"a","title":"x","due":"2026-10-02T00:00:00+09:00"}`,
			replies:  map[string][]string{"POST /tasks/v1/lists/a/tasks": {one}},
			requests: []string{`POST /tasks/v1/lists/a/tasks?alt=json&prettyPrint=false {"due":"2026-10-02T00:00:00Z","title":"x"}` + "\n"},
			result:   one,
		},
		{
			name: "day that is none", tool: "tasks_create_task", args: `{"tasklist_id":"a","title":"x","due":"tomorrow"}`,
			code: "validation_error",
		},
		{
			name: "only what is given changes, also to nothing", tool: "tasks_update_task", args: `{"tasklist_id":"a","task_id":"t1","notes":"","due":""}`,
			replies:  map[string][]string{"PATCH /tasks/v1/lists/a/tasks/t1": {one}},
			requests: []string{`PATCH /tasks/v1/lists/a/tasks/t1?alt=json&prettyPrint=false {"due":null,"notes":""}` + "\n"},
			result:   one,
		},
		{name: "nothing to change", tool: "tasks_update_task", args: `{"tasklist_id":"a","task_id":"t1"}`, code: "validation_error"},
		{name: "no id", tool: "tasks_delete_task", args: `{"tasklist_id":"a","task_id":" "}`, code: "validation_error"},
		{
			name: "empty answer to a deletion", tool: "tasks_delete_task", args: `{"tasklist_id":"a","task_id":"t1"}`,
			replies:  map[string][]string{"DELETE /tasks/v1/lists/a/tasks/t1": {"204"}},
			requests: []string{"DELETE /tasks/v1/lists/a/tasks/t1?alt=json&prettyPrint=false"},
			result:   `{"success":true}`,
		},
		{
			name: "new list", tool: "tasks_create_tasklist", args: `{"title":"Shop"}`,
			replies: map[string][]string{"POST /tasks/v1/users/@me/lists": {`{"id":"s","title":"Shop"}`}},
			result:  `{"id":"s","title":"Shop"}`,
		},
		{
			name: "one task", tool: "tasks_get_task", args: `{"tasklist_id":"a/b","task_id":"t1"}`,
			replies:  map[string][]string{"GET /tasks/v1/lists/a/b/tasks/t1": {one}},
			requests: []string{"GET /tasks/v1/lists/a%2Fb/tasks/t1?alt=json&prettyPrint=false"},
			result:   one,
		},
		{name: "unknown task", tool: "tasks_get_task", args: `{"tasklist_id":"a","task_id":"t9"}`, code: service.CodeNotFound},
	})
}
