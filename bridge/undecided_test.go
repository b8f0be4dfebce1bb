package bridge_test

import (
	"testing"

	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/interact"
)

// What is pressed somewhere else than under the question holds as much as there: for those who
// may, on their platform, for the question that they saw, once.
func TestAPressFromElsewhereHoldsAsInTheChat(t *testing.T) {
	w := &execTools{}
	r := w.guarded(t, func(c *bridge.Config) {
		c.Access = access.Access{Allow: []string{"fake:1", "fake:2"}, Admins: []string{"fake:9", "other:9"}}
	})
	r.accept(group("1", "1", "run a"))
	card := r.platform.wait(t, 1)[0]
	// The buttons can be pressed once the record of the message is written.
	r.accept(pressOn(card, "x", "2", card.button(t, "Deny")))
	r.platform.toast(t, "x")
	all := bridge.ApprovalsOf(r.bridge)
	asked := func(user string) interact.ApprovalRequest {
		t.Helper()
		list, err := all.Waiting(t.Context(), user, 10)
		if err != nil || len(list) != 1 || list[0].Tool != "exec" || list[0].Requester != "fake:1" {
			t.Fatalf("%s sees %+v, %v", user, list, err)
		}
		return list[0]
	}
	press := func(user, data string, want bool) {
		t.Helper()
		if taken, err := all.Press(t.Context(), user, "Nine", data); err != nil || taken != want {
			t.Errorf("a press of %s: %v, %v", user, taken, err)
		}
	}
	for _, user := range []string{"fake:2", "fake:3", "other:9", "fake:"} {
		if q := asked(user); q.AllowData+q.DenyData+q.Text != "" {
			t.Errorf("%s may decide: %+v", user, q)
		}
	}
	q := asked("fake:9")
	press("other:9", q.AllowData, false)
	press("fake:9", "nonsense", false)
	press("fake:2", q.AllowData, true) // as in the chat, where they are told that they may not
	press("fake:9", q.AllowData+"9", true)
	press("fake:9", q.AllowData, true)
	if answer := r.platform.wait(t, 2)[1].text; answer != "ran a" {
		t.Errorf("answer %q", answer)
	}
	press("fake:9", q.AllowData, false)
	if told, err := all.PressResult(t.Context(), q.AllowData); err != nil || told != "Allowed once." {
		t.Errorf("told %q, %v", told, err)
	}
	if list, err := all.Waiting(t.Context(), "fake:9", 10); err != nil || len(list) != 0 {
		t.Errorf("there wait %+v, %v", list, err)
	}
	r.did(t, "allow a call fake:9 Nine page exec")
}
