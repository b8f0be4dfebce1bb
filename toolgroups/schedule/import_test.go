package schedule_test

import (
	"errors"
	"fmt"
	"testing"

	"oneclaw/toolgroups/schedule"
)

// Tasks from elsewhere are stored once, and do not run by themselves.
func TestImportedTasksArePausedAndStoredOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "Europe/Berlin", func(c *schedule.Config) { c.MaxTasks = 3 })
	task := func(id string, plan schedule.Plan) schedule.Task {
		return schedule.Task{ID: id, Owner: "fake:1", Chat: "fake:1", User: "fake:1", Direct: true, Name: id, Prompt: "Do it.", Plan: plan, Enabled: true}
	}
	hourly := schedule.Plan{Kind: schedule.Interval, EveryMinutes: 60}
	tasks := []schedule.Task{
		task("a", hourly), task("b", schedule.Plan{Kind: schedule.Cron, Expression: "0 9 * * 1"}), task("old", schedule.Plan{Kind: schedule.OneTime, Date: "2001-01-01"}),
		task("bad", schedule.Plan{Kind: schedule.Cron, Expression: "soon"}),
		{ID: "empty", Owner: "fake:1", Name: "empty", Plan: hourly},
		task("c", hourly), task("d", hourly),
	}
	check := func(write bool, known ...string) {
		t.Helper()
		reasons, err := o.Import(t.Context(), tasks, write)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, reason := range reasons {
			if errors.Is(reason, schedule.ErrKnown) {
				got = append(got, tasks[i].ID)
			} else if (reason == nil) != (known == nil && (tasks[i].ID == "a" || tasks[i].ID == "b" || tasks[i].ID == "c")) {
				t.Errorf("write %t: task %s: %v", write, tasks[i].ID, reason)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(known) {
			t.Errorf("write %t: known %v, want %v", write, got, known)
		}
	}
	check(false)
	check(true)
	check(false, "a", "b", "c")
	check(true, "a", "b", "c")
	stored, err := o.Tasks(t.Context(), "fake:1")
	if err != nil || len(stored) != 3 {
		t.Fatalf("%v, %v", stored, err)
	}
	for _, one := range stored {
		if one.Enabled || !one.Due.IsZero() {
			t.Errorf("%s runs at %s", one.ID, one.Due)
		}
		if !one.Outside {
			t.Errorf("%s counts as the person's own words", one.ID)
		}
	}
}
