package google

import "fmt"

// tasks emulates the task lists of an account.
type tasks struct {
	*owner
	lists, tasks *shelf
}

func newTasks(o *owner) offer {
	t := &tasks{o, newShelf("id"), newShelf("id")}
	t.seed()
	return offer{collections: map[string]collection{
		"tasks.tasklists": {shelf: t.lists, key: "tasklist", list: "items", mint: "list"},
		"tasks.tasks":     {shelf: t.tasks, key: "task", parent: "tasklist", in: t.lists, list: "items", mint: "task", made: t.made},
	}}
}

// made completes a new task.
func (t *tasks) made(c *call, d doc) {
	if d["status"] == nil {
		d["status"] = "needsAction"
	}
	if parent := c.query.Get("parent"); parent != "" {
		d["parent"] = parent
	}
	d["kind"], d["updated"], d["position"] = "tasks#task", t.stamp(), fmt.Sprintf("%020d", t.next)
}
