package google

import "fmt"

// tasks emulates the task lists of an account.
type tasks struct {
	*account
	lists, tasks *store
}

func newTasks(o *account) implementation {
	t := &tasks{o, newStore("id"), newStore("id")}
	t.seed()
	return implementation{collections: map[string]collection{
		"tasks.tasklists": {store: t.lists, idParam: "tasklist", listField: "items", idPrefix: "list"},
		"tasks.tasks":     {store: t.tasks, idParam: "task", parentParam: "tasklist", parents: t.lists, listField: "items", idPrefix: "task", onCreate: t.completeTask},
	}}
}

// completeTask fills in the fields of a new task that the server sets.
func (t *tasks) completeTask(c *call, d doc) {
	if d["status"] == nil {
		d["status"] = "needsAction"
	}
	if parent := c.query.Get("parent"); parent != "" {
		d["parent"] = parent
	}
	d["kind"], d["updated"], d["position"] = "tasks#task", t.timestamp(), fmt.Sprintf("%020d", t.lastID)
}
