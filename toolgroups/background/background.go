// Package background has the tools for background tasks: long work that the model does in a conversation
// of its own while the chat goes on. The bridge runs the tasks.
package background

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/toolgroups"
)

//go:embed background.json
var manifests embed.FS

// Tasks runs background tasks. The bridge implements it.
type Tasks interface {
	// StartTask starts a task for a call, once for each call.
	StartTask(ctx context.Context, call toolgroups.Call, task toolgroups.BackgroundTask) (toolgroups.BackgroundTask, error)
	// Tasks returns the open tasks of the chat of a call.
	Tasks(call toolgroups.Call) ([]toolgroups.BackgroundTask, error)
	// Task returns a task of the chat of a call, and whether there is one with the id.
	Task(ctx context.Context, call toolgroups.Call, id string) (toolgroups.BackgroundTask, bool, error)
	// CancelTask cancels a task of the chat of a call, and reports whether there is one with the id.
	CancelTask(ctx context.Context, call toolgroups.Call, id string) (toolgroups.BackgroundTask, bool, error)
}

// Config configures the tools. All fields are required.
type Config struct {
	// Tasks returns the runner of the tasks.
	Tasks func() Tasks
	// Registry returns the current tools.
	Registry func() *toolgroups.Registry
	// FindModel returns the full name of a model that a user names. An error for the model is a
	// *[toolgroups.Error].
	FindModel func(ctx context.Context, name string) (string, error)
	// Now is the clock.
	Now func() time.Time
}

// Error codes of these tools.
const (
	codeNotFound = "not_found"
)

// Bounds of the arguments: characters of a task, and groups with which it begins.
const (
	maxTask   = 16_000
	maxGroups = 5
)

type tools struct{ cfg Config }

// Group returns the four tools.
func Group(cfg Config) (toolgroups.Group, error) {
	if cfg.Tasks == nil || cfg.Registry == nil || cfg.FindModel == nil || cfg.Now == nil {
		return toolgroups.Group{}, errors.New("background: all fields of Config are required")
	}
	t := &tools{cfg}
	group, err := toolgroups.ReadGroup(manifests, "background", map[string]toolgroups.Handler{
		"start_background_task":  toolgroups.TypedHandler(t.start),
		"list_background_tasks":  toolgroups.TypedHandler(t.list),
		toolgroups.WaitForTasks:  toolgroups.TypedHandler(t.wait),
		"cancel_background_task": toolgroups.TypedHandler(t.cancel),
	})
	group.NotInTasks = true
	return group, err
}

type startInput struct {
	Task   string   `json:"task"`
	Title  string   `json:"title"`
	Groups []string `json:"groups"`
	Model  string   `json:"model"`
}

func (t *tools) start(ctx context.Context, call toolgroups.Call, in startInput) (toolgroups.Result, error) {
	task := toolgroups.BackgroundTask{Text: strings.TrimSpace(in.Task), Title: strings.TrimSpace(in.Title)}
	switch n := utf8.RuneCountInString(task.Text); {
	case n == 0:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'task' is blank.")
	case n > maxTask:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'task' has %d characters, at most %d. Put long input into a file and name the file.", n, maxTask)
	}
	var err error
	if task.Groups, err = t.checkGroups(call, in.Groups); err != nil {
		return toolgroups.Result{}, err
	}
	if name := strings.TrimSpace(in.Model); name != "" {
		if task.Model, err = t.cfg.FindModel(ctx, name); err != nil {
			return toolgroups.Result{}, err
		}
	}
	if task, err = t.cfg.Tasks().StartTask(ctx, call, task); err != nil {
		return toolgroups.Result{}, err
	}
	return toolgroups.TextResult("Started '%s' (id %s). The user sees its progress, and its result comes to this chat as a message. Tell the user briefly that it has started.", task.Title, task.ID)
}

// checkGroups checks the groups with which a task begins, and returns their names without blank ones.
func (t *tools) checkGroups(call toolgroups.Call, names []string) (groups []string, err error) {
	registry := t.cfg.Registry().ForTasks()
	if len(names) > maxGroups {
		return nil, toolgroups.Errorf(toolgroups.CodeInvalid, "'groups' has %d names, at most %d: the task can load others itself.", len(names), maxGroups)
	}
	for _, name := range names {
		name = strings.TrimSpace(name)
		group, known := registry.Group(name)
		switch {
		case name == "", slices.Contains(groups, name):
			continue
		case !known:
			return nil, toolgroups.Errorf(codeNotFound, "There is no tool group '%s' for a background task. Groups: %s. Nothing was started.", shorten(name), strings.Join(registry.GroupNames(), ", "))
		case call.Role < group.Role:
			return nil, toolgroups.Errorf(toolgroups.CodeDenied, "The tool group '%s' is for administrators. Nothing was started.", name)
		case registry.GroupDisabled(name):
			return nil, toolgroups.Errorf(toolgroups.CodeDisabled, "The tool group '%s' is switched off by an administrator. Nothing was started.", name)
		}
		groups = append(groups, name)
	}
	return groups, nil
}

func (t *tools) list(_ context.Context, call toolgroups.Call, _ struct{}) (toolgroups.Result, error) {
	open, err := t.cfg.Tasks().Tasks(call)
	if err != nil {
		return toolgroups.Result{}, err
	}
	if len(open) == 0 {
		return toolgroups.TextResult("No background task is open in this chat.")
	}
	var text strings.Builder
	for _, task := range open {
		fmt.Fprintf(&text, "%s\n", t.describe(task))
	}
	return toolgroups.Result{Text: text.String()}, nil
}

func (t *tools) describe(task toolgroups.BackgroundTask) string {
	return fmt.Sprintf("'%s' (id %s) %s, started %s ago", task.Title, task.ID, task.State, max(0, t.cfg.Now().Sub(task.Began)).Truncate(time.Second))
}

type waitInput struct {
	TaskIDs []string `json:"task_ids"`
}

// wait says how tasks ended. The bridge runs the call only once the tasks have ended, or a message has
// come.
func (t *tools) wait(ctx context.Context, call toolgroups.Call, in waitInput) (toolgroups.Result, error) {
	open, err := t.cfg.Tasks().Tasks(call)
	if err != nil {
		return toolgroups.Result{}, err
	}
	tasks := open
	if len(in.TaskIDs) > 0 {
		tasks = nil
	}
	for _, id := range in.TaskIDs {
		task, known, err := t.cfg.Tasks().Task(ctx, call, id)
		if err != nil {
			return toolgroups.Result{}, err
		}
		if !known {
			return toolgroups.Result{}, t.unknown(id, open)
		}
		tasks = append(tasks, task)
	}
	var text strings.Builder
	waits := false
	for _, task := range tasks {
		fmt.Fprintf(&text, "%s\n", t.describe(task))
		waits = waits || task.Open
	}
	if len(tasks) == 0 {
		text.WriteString("No background task is open in this chat any more.\n")
	}
	if waits {
		text.WriteString("You do not wait for what is still open, because a message has come. Answer now; each result comes as a message by itself.")
	} else {
		text.WriteString("Each result comes as a message of its own, now or after your answer.")
	}
	return toolgroups.Result{Text: text.String()}, nil
}

type cancelInput struct {
	TaskID string `json:"task_id"`
}

func (t *tools) cancel(ctx context.Context, call toolgroups.Call, in cancelInput) (toolgroups.Result, error) {
	task, known, err := t.cfg.Tasks().CancelTask(ctx, call, in.TaskID)
	switch {
	case err != nil:
		return toolgroups.Result{}, err
	case !known:
		open, err := t.cfg.Tasks().Tasks(call)
		if err != nil {
			return toolgroups.Result{}, err
		}
		return toolgroups.Result{}, t.unknown(in.TaskID, open)
	case !task.Open:
		return toolgroups.TextResult("'%s' %s already.", task.Title, task.State)
	}
	return toolgroups.TextResult("Cancelled '%s' (id %s).", task.Title, task.ID)
}

// unknown returns the error about an id that no task has.
func (t *tools) unknown(id string, open []toolgroups.BackgroundTask) error {
	var ids []string
	for _, task := range open {
		ids = append(ids, task.ID)
	}
	if len(ids) == 0 {
		ids = []string{"none"}
	}
	return toolgroups.Errorf(codeNotFound, "There is no background task with the id '%s' in this chat. Open: %s.", shorten(id), strings.Join(ids, ", "))
}

// maxEcho bounds an unknown name that is repeated to the model, in characters.
const maxEcho = 64

func shorten(name string) string {
	runes := []rune(strings.Join(strings.Fields(name), " "))
	return string(runes[:min(len(runes), maxEcho)])
}
