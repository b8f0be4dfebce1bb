package organizer

import (
	"context"
	"strings"
	"time"

	"google.golang.org/api/tasks/v1"

	"oneclaw/toolgroups/google/service"
)

// Sizes of lists of tasks (developers.google.com/workspace/tasks/reference/rest).
const (
	maxTasks     = 1000
	tasksPage    = 100
	defaultTasks = 100
)

// Tasks returns the group of tools for tasks.
func Tasks() service.Group {
	return service.Group{
		Name:      "google_tasks",
		Scopes:    []string{tasks.TasksScope},
		Manifests: manifests,
		Operations: service.Operations{
			"tasksListTasklists":  service.NewOperation(tasks.NewService, tasksListTasklists),
			"tasksListTasks":      service.NewOperation(tasks.NewService, tasksListTasks),
			"tasksCreateTask":     service.NewOperation(tasks.NewService, tasksCreateTask),
			"tasksUpdateTask":     service.NewOperation(tasks.NewService, tasksUpdateTask),
			"tasksCompleteTask":   service.NewOperation(tasks.NewService, tasksCompleteTask),
			"tasksDeleteTask":     service.NewOperation(tasks.NewService, tasksDeleteTask),
			"tasksCreateTasklist": service.NewOperation(tasks.NewService, tasksCreateTasklist),
			"tasksGetTask":        service.NewOperation(tasks.NewService, tasksGetTask),
		},
		Resources: service.Resources{
			"tasklist_id": service.NewOperation(tasks.NewService, describeTasklist),
			"task_id":     service.NewOperation(tasks.NewService, describeTask),
			"parent":      service.NewOperation(tasks.NewService, describeTask),
		},
	}
}

func tasksListTasklists(ctx context.Context, api *tasks.Service, _ *service.Conn, _ struct{}) (any, error) {
	call := api.Tasklists.List().Context(ctx)
	size := func(n int64) *tasks.TasklistsListCall { return call.MaxResults(min(n, tasksPage)) }
	lists, _, err := service.Collect(maxTasks, call, size, func(page *tasks.TaskLists) ([]*tasks.TaskList, string) {
		return page.Items, page.NextPageToken
	})
	return map[string]any{"tasklists": lists}, err
}

type taskArgs struct {
	TasklistID    string `json:"tasklist_id"`
	TaskID        string `json:"task_id"`
	ShowCompleted bool   `json:"show_completed"`
	MaxResults    int    `json:"max_results"`
	Title         string `json:"title"`
	Notes         string `json:"notes"`
	Status        string `json:"status"`
	Due           string `json:"due"`
	Parent        string `json:"parent"`
}

// taskItems is the result of tasks_list_tasks. HasMore is true if the maximum cut the list.
type taskItems struct {
	Tasks   []*tasks.Task `json:"tasks"`
	HasMore bool          `json:"more,omitempty"`
}

func tasksListTasks(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskArgs) (any, error) {
	// Tasks completed in Google's own apps are also hidden.
	call := api.Tasks.List(in.TasklistID).Context(ctx).ShowCompleted(in.ShowCompleted).ShowHidden(in.ShowCompleted)
	size := func(n int64) *tasks.TasksListCall { return call.MaxResults(min(n, tasksPage)) }
	limit := service.ClampLimit(in.MaxResults, defaultTasks, maxTasks)
	items, next, err := service.Collect(limit, call, size, func(page *tasks.Tasks) ([]*tasks.Task, string) {
		return page.Items, page.NextPageToken
	})
	return taskItems{items, next != ""}, err
}

func tasksCreateTask(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskArgs) (any, error) {
	due, err := parseTaskDay(in.Due)
	if err != nil {
		return nil, err
	}
	call := api.Tasks.Insert(in.TasklistID, &tasks.Task{Title: in.Title, Notes: in.Notes, Due: due}).Context(ctx)
	if in.Parent != "" {
		call.Parent(in.Parent)
	}
	return call.Do()
}

// parseTaskDay converts a day or time into the time that Google requires. Google uses UTC and ignores
// the time of day, so a time stands for its day.
func parseTaskDay(s string) (string, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return "", nil
	}
	day, err := time.Parse(time.DateOnly, s)
	if err != nil {
		day, err = time.Parse(time.RFC3339, s)
	}
	if err != nil {
		return "", service.Invalidf("'due' must be a day like 2026-03-31 or an RFC 3339 time, not %q", s)
	}
	return day.Format(time.DateOnly) + "T00:00:00Z", nil
}

// taskUpdateArgs distinguishes empty fields from missing ones.
type taskUpdateArgs struct {
	taskArgs
	Title *string `json:"title"`
	Notes *string `json:"notes"`
	Due   *string `json:"due"`
}

func tasksUpdateTask(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskUpdateArgs) (any, error) {
	patch := &tasks.Task{Status: in.Status}
	patchField(&patch.ForceSendFields, "Title", &patch.Title, in.Title)
	patchField(&patch.ForceSendFields, "Notes", &patch.Notes, in.Notes)
	if in.Due != nil {
		due, err := parseTaskDay(*in.Due)
		if err != nil {
			return nil, err
		}
		if patch.Due = due; due == "" {
			patch.NullFields = append(patch.NullFields, "Due")
		}
	}
	if in.Status == "" && in.Due == nil && len(patch.ForceSendFields) == 0 {
		return nil, service.Invalidf("nothing to change: give title, notes, status or due")
	}
	return api.Tasks.Patch(in.TasklistID, in.TaskID, patch).Context(ctx).Do()
}

func tasksCompleteTask(ctx context.Context, api *tasks.Service, c *service.Conn, in taskArgs) (any, error) {
	at := c.Now().UTC().Format(time.RFC3339)
	return api.Tasks.Patch(in.TasklistID, in.TaskID, &tasks.Task{Status: "completed", Completed: &at}).Context(ctx).Do()
}

func tasksDeleteTask(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskArgs) (any, error) {
	return service.SuccessResult(), api.Tasks.Delete(in.TasklistID, in.TaskID).Context(ctx).Do()
}

func tasksCreateTasklist(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskArgs) (any, error) {
	return api.Tasklists.Insert(&tasks.TaskList{Title: in.Title}).Context(ctx).Do()
}

func tasksGetTask(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskArgs) (any, error) {
	return api.Tasks.Get(in.TasklistID, in.TaskID).Context(ctx).Do()
}
