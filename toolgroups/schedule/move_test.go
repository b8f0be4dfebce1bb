package schedule_test

import (
	"testing"
	"time"
)

// TestAMovedChatKeepsItsTasks lets a task run, moves it to another owner, and lets it
// run on there.
func TestAMovedChatKeepsItsTasks(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *office) {
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
