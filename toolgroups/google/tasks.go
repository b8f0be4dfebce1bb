package google

import (
	"context"
	"strings"
	"time"

	"google.golang.org/api/tasks/v1"
)

// Maxima of the lists of tasks (developers.google.com/workspace/tasks/reference/rest).
const (
	maxTasks     = 1000
	tasksPage    = 100
	defaultTasks = 100
)

func tasksGroup() group {
	return group{
		name:   "google_tasks",
		scopes: []string{tasks.TasksScope},
		operations: operations{
			"tasksListTasklists":  with(tasks.NewService, tasksListTasklists),
			"tasksListTasks":      with(tasks.NewService, tasksListTasks),
			"tasksCreateTask":     with(tasks.NewService, tasksCreateTask),
			"tasksUpdateTask":     with(tasks.NewService, tasksUpdateTask),
			"tasksCompleteTask":   with(tasks.NewService, tasksCompleteTask),
			"tasksDeleteTask":     with(tasks.NewService, tasksDeleteTask),
			"tasksCreateTasklist": with(tasks.NewService, tasksCreateTasklist),
			"tasksGetTask":        with(tasks.NewService, tasksGetTask),
		},
	}
}

// taskLists is the result of tasks_list_tasklists.
type taskLists struct {
	Lists []*tasks.TaskList `json:"tasklists"`
}

func tasksListTasklists(ctx context.Context, api *tasks.Service, _ *conn, _ struct{}) (any, error) {
	lists, _, err := collect(maxTasks, func(token string, wanted int64) ([]*tasks.TaskList, string, error) {
		call := api.Tasklists.List().Context(ctx).MaxResults(min(wanted, tasksPage))
		if token != "" {
			call.PageToken(token)
		}
		page, err := call.Do()
		if err != nil {
			return nil, "", err
		}
		return page.Items, page.NextPageToken, nil
	})
	return taskLists{lists}, err
}

// taskArgs name a list and, for most tools, a task in it.
type taskArgs struct {
	List string `json:"tasklist_id"`
	Task string `json:"task_id"`
}

type tasksListArgs struct {
	List       string `json:"tasklist_id"`
	Completed  bool   `json:"show_completed"`
	MaxResults int    `json:"max_results"`
}

// taskItems is the result of tasks_list_tasks. More says that the maximum cut it.
type taskItems struct {
	Tasks []*tasks.Task `json:"tasks"`
	More  bool          `json:"more,omitempty"`
}

func tasksListTasks(ctx context.Context, api *tasks.Service, _ *conn, in tasksListArgs) (any, error) {
	items, next, err := collect(bounded(in.MaxResults, defaultTasks, maxTasks),
		func(token string, wanted int64) ([]*tasks.Task, string, error) {
			// Tasks that were finished in Google's own apps are hidden as well.
			call := api.Tasks.List(in.List).Context(ctx).ShowCompleted(in.Completed).ShowHidden(in.Completed).
				MaxResults(min(wanted, tasksPage))
			if token != "" {
				call.PageToken(token)
			}
			page, err := call.Do()
			if err != nil {
				return nil, "", err
			}
			return page.Items, page.NextPageToken, nil
		})
	return taskItems{items, next != ""}, err
}

type taskCreateArgs struct {
	List   string `json:"tasklist_id"`
	Title  string `json:"title"`
	Notes  string `json:"notes"`
	Due    string `json:"due"`
	Parent string `json:"parent"`
}

func tasksCreateTask(ctx context.Context, api *tasks.Service, _ *conn, in taskCreateArgs) (any, error) {
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

// taskDay accepts a day where Google wants a time, whose clock it ignores.
func taskDay(s string) (string, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return "", nil
	}
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		return day.Format(time.RFC3339), nil
	}
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		return "", invalidf("'due' must be a day like 2026-03-31 or an RFC 3339 time, not %q", s)
	}
	return s, nil
}

type taskUpdateArgs struct {
	taskArgs
	Title  *string `json:"title"`
	Notes  *string `json:"notes"`
	Status string  `json:"status"`
	Due    *string `json:"due"`
}

func tasksUpdateTask(ctx context.Context, api *tasks.Service, _ *conn, in taskUpdateArgs) (any, error) {
	patch := &tasks.Task{Status: in.Status}
	changed := in.Status != ""
	if in.Title != nil {
		patch.Title, changed = *in.Title, true
		patch.ForceSendFields = append(patch.ForceSendFields, "Title")
	}
	if in.Notes != nil {
		patch.Notes, changed = *in.Notes, true
		patch.ForceSendFields = append(patch.ForceSendFields, "Notes")
	}
	if in.Due != nil {
		due, err := taskDay(*in.Due)
		if err != nil {
			return nil, err
		}
		if patch.Due, changed = due, true; due == "" {
			patch.NullFields = append(patch.NullFields, "Due")
		}
	}
	if !changed {
		return nil, invalidf("nothing to change: give title, notes, status or due")
	}
	return api.Tasks.Patch(in.List, in.Task, patch).Context(ctx).Do()
}

func tasksCompleteTask(ctx context.Context, api *tasks.Service, c *conn, in taskArgs) (any, error) {
	at := c.google.now().UTC().Format(time.RFC3339)
	return api.Tasks.Patch(in.List, in.Task, &tasks.Task{Status: "completed", Completed: &at}).Context(ctx).Do()
}

func tasksDeleteTask(ctx context.Context, api *tasks.Service, _ *conn, in taskArgs) (any, error) {
	return done{true}, api.Tasks.Delete(in.List, in.Task).Context(ctx).Do()
}

func tasksCreateTasklist(ctx context.Context, api *tasks.Service, _ *conn, in struct {
	Title string `json:"title"`
},
) (any, error) {
	return api.Tasklists.Insert(&tasks.TaskList{Title: in.Title}).Context(ctx).Do()
}

func tasksGetTask(ctx context.Context, api *tasks.Service, _ *conn, in taskArgs) (any, error) {
	return api.Tasks.Get(in.List, in.Task).Context(ctx).Do()
}
