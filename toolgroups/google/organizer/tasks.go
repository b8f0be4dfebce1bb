package organizer

import (
	"context"
	"strings"
	"time"

	"google.golang.org/api/tasks/v1"

	"oneclaw/toolgroups/google/service"
)

// Maxima of the lists of tasks (developers.google.com/workspace/tasks/reference/rest).
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
			"tasksListTasklists":  service.With(tasks.NewService, tasksListTasklists),
			"tasksListTasks":      service.With(tasks.NewService, tasksListTasks),
			"tasksCreateTask":     service.With(tasks.NewService, tasksCreateTask),
			"tasksUpdateTask":     service.With(tasks.NewService, tasksUpdateTask),
			"tasksCompleteTask":   service.With(tasks.NewService, tasksCompleteTask),
			"tasksDeleteTask":     service.With(tasks.NewService, tasksDeleteTask),
			"tasksCreateTasklist": service.With(tasks.NewService, tasksCreateTasklist),
			"tasksGetTask":        service.With(tasks.NewService, tasksGetTask),
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
	List       string `json:"tasklist_id"`
	Task       string `json:"task_id"`
	Completed  bool   `json:"show_completed"`
	MaxResults int    `json:"max_results"`
	Title      string `json:"title"`
	Notes      string `json:"notes"`
	Status     string `json:"status"`
	Due        string `json:"due"`
	Parent     string `json:"parent"`
}

// taskItems is the result of tasks_list_tasks. More says that the maximum cut the list.
type taskItems struct {
	Tasks []*tasks.Task `json:"tasks"`
	More  bool          `json:"more,omitempty"`
}

func tasksListTasks(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskArgs) (any, error) {
	// Tasks completed in Google's own apps are hidden too.
	call := api.Tasks.List(in.List).Context(ctx).ShowCompleted(in.Completed).ShowHidden(in.Completed)
	size := func(n int64) *tasks.TasksListCall { return call.MaxResults(min(n, tasksPage)) }
	limit := service.Bounded(in.MaxResults, defaultTasks, maxTasks)
	items, next, err := service.Collect(limit, call, size, func(page *tasks.Tasks) ([]*tasks.Task, string) {
		return page.Items, page.NextPageToken
	})
	return taskItems{items, next != ""}, err
}

func tasksCreateTask(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskArgs) (any, error) {
	due, err := taskDay(in.Due)
	if err != nil {
		return nil, err
	}
	call := api.Tasks.Insert(in.List, &tasks.Task{Title: in.Title, Notes: in.Notes, Due: due}).Context(ctx)
	if in.Parent != "" {
		call.Parent(in.Parent)
	}
	return call.Do()
}

// taskDay converts a day into the time that Google requires. Google uses UTC and ignores the
// time of day, so a time stands for its day.
func taskDay(s string) (string, error) {
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

// taskUpdateArgs distinguish empty fields from missing ones.
type taskUpdateArgs struct {
	taskArgs
	Title *string `json:"title"`
	Notes *string `json:"notes"`
	Due   *string `json:"due"`
}

func tasksUpdateTask(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskUpdateArgs) (any, error) {
	patch := &tasks.Task{Status: in.Status}
	replace(&patch.ForceSendFields, "Title", &patch.Title, in.Title)
	replace(&patch.ForceSendFields, "Notes", &patch.Notes, in.Notes)
	if in.Due != nil {
		due, err := taskDay(*in.Due)
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
	return api.Tasks.Patch(in.List, in.Task, patch).Context(ctx).Do()
}

func tasksCompleteTask(ctx context.Context, api *tasks.Service, c *service.Conn, in taskArgs) (any, error) {
	at := c.Now().UTC().Format(time.RFC3339)
	return api.Tasks.Patch(in.List, in.Task, &tasks.Task{Status: "completed", Completed: &at}).Context(ctx).Do()
}

func tasksDeleteTask(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskArgs) (any, error) {
	return service.Done(), api.Tasks.Delete(in.List, in.Task).Context(ctx).Do()
}

func tasksCreateTasklist(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskArgs) (any, error) {
	return api.Tasklists.Insert(&tasks.TaskList{Title: in.Title}).Context(ctx).Do()
}

func tasksGetTask(ctx context.Context, api *tasks.Service, _ *service.Conn, in taskArgs) (any, error) {
	return api.Tasks.Get(in.List, in.Task).Context(ctx).Do()
}
