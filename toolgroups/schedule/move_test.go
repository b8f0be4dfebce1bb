package schedule_test

import (
	"testing"
	"time"

	"oneclaw/toolgroups"
)

// TestAMovedChatKeepsItsTasks lets a task run, moves it to another owner, and lets it
// run on there.
func TestAMovedChatKeepsItsTasks(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		o.make(morning)
		o.start()
		pass(4 * time.Hour)
		o.expect("20260610T0800")
		for range 2 { // the second time changes nothing
			if err := o.Move(t.Context(), "fake:1", "fake:2", "fake:2"); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(o.tasks("fake:1")); n != 0 {
			t.Errorf("%d tasks stayed", n)
		}
		moved := o.tasks("fake:2")
		if len(moved) != 1 || moved[0].Chat != "fake:2" || len(moved[0].History) != 1 {
			t.Fatalf("moved: %+v", moved)
		}
		pass(day)
		o.mu.Lock()
		chats := []string{}
		for _, r := range o.runs {
			chats = append(chats, r.Chat+" "+r.Owner)
		}
		o.mu.Unlock()
		if len(chats) != 1 || chats[0] != "fake:2 fake:2" {
			t.Errorf("runs in %q, want one in the new chat", chats)
		}
		o.expect("20260611T0800")
		if got := o.index(); len(got) != 1 {
			t.Errorf("index: %q", got)
		}
	})
}

func TestForgetTakesTheTasksThatSomebodyMade(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		o.make(morning)
		for _, user := range []string{"fake:1", "fake:2"} {
			in := toolgroups.Scope{User: user, Role: toolgroups.RoleUser, Chat: "fake:-7", Owner: "fake:-7"}
			if _, err := o.run(in, "schedule_task", morning); err != nil {
				t.Fatal(err)
			}
		}
		if tasks, err := o.TasksOf(t.Context(), "fake:1"); err != nil || len(tasks) != 2 {
			t.Fatalf("tasks of one user: %+v, %v", tasks, err)
		}
		for range 2 {
			if err := o.Forget(t.Context(), "fake:1"); err != nil {
				t.Fatal(err)
			}
		}
		if own, group := o.tasks("fake:1"), o.tasks("fake:-7"); len(own) != 0 || len(group) != 1 || group[0].User != "fake:2" {
			t.Errorf("left are %+v and %+v", own, group)
		}
		if got := o.index(); len(got) != 1 {
			t.Errorf("index: %q", got)
		}
	})
}
