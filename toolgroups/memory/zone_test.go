package memory_test

import (
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

// TestTheMemoryKnowsWherePeopleLive: the newest fact that tells counts, in a shared chat only that of the person.
func TestTheMemoryKnowsWherePeopleLive(t *testing.T) {
	t.Parallel()
	b := newBench(t, openStore(t))
	me := scopeOf("telegram:1")
	group := toolgroups.Scope{Owner: "telegram:-5", User: "telegram:1", Role: toolgroups.RoleUser}
	other := group
	other.User = "telegram:2"
	for _, step := range []struct{ content, zone, says, want string }{
		{"Likes tea", "", "Saved in Notes.", ""},
		{"Lives in Lisbon", "lisbon", "those of Europe/Lisbon from now on", "Europe/Lisbon"},
		{"Lives on the moon", "Moon/Tycho", "want an IANA name", "Europe/Lisbon"},
		{"Has a cat", "", "Saved in Notes.", "Europe/Lisbon"},
		{"Moved to Tokyo", "Asia/Tokyo", "Asia/Tokyo", "Asia/Tokyo"},
	} {
		text, fault := b.call(t, me.Owner, map[string]string{"content": step.content, "time_zone": step.zone})
		if fault != nil {
			text = fault.Message
		}
		if !strings.Contains(text, step.says) {
			t.Errorf("%s: %q, want %q", step.content, text, step.says)
		}
		if got := b.ZoneOf(t.Context(), me); got != step.want {
			t.Errorf("%s: the zone is %q, want %q", step.content, got, step.want)
		}
	}
	if text, fault := b.use(t, "update_memory", me, `{"memory": "Moved to Tokyo", "content": "Moved to Kyoto", "time_zone": "Asia/Tokyo"}`); fault != nil || b.ZoneOf(t.Context(), me) != "Asia/Tokyo" {
		t.Errorf("a corrected fact: %s %v, %s", text, fault, b.ZoneOf(t.Context(), me))
	}
	if _, fault := b.use(t, "forget_memory", me, `{"memory": "Moved to Kyoto"}`); fault != nil || b.ZoneOf(t.Context(), me) != "Europe/Lisbon" {
		t.Errorf("a forgotten fact: %v, %s", fault, b.ZoneOf(t.Context(), me))
	}
	if got := b.ZoneOf(t.Context(), group); got != "" {
		t.Errorf("a group is told what a direct chat knows: %s", got)
	}
	if _, _, err := b.Save(t.Context(), group, "", "Ann lives in Rome", "Europe/Rome"); err != nil {
		t.Fatal(err)
	}
	if mine, theirs := b.ZoneOf(t.Context(), group), b.ZoneOf(t.Context(), other); mine != "Europe/Rome" || theirs != "" {
		t.Errorf("in a group it is %q for its author and %q for others", mine, theirs)
	}
}
