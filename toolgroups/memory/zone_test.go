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
		{"lives in Lisbon", "Europe/Lisbon", "Nothing has to be saved", "Asia/Tokyo"}, // that fact has its zone
		{"Has a cat", "Asia/Tokyo", "without this time zone", "Asia/Tokyo"},           // and that one has none
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

// TestAZoneIsAddedToAFactAndStaysWithIt: what the model and the line below the answer say is what holds then.
func TestAZoneIsAddedToAFactAndStaysWithIt(t *testing.T) {
	t.Parallel()
	me := scopeOf("telegram:1")
	ann := toolgroups.Scope{Owner: "telegram:-5", User: "telegram:1", Role: toolgroups.RoleUser}
	admin, read := ann, me
	read.HoldsOthers = true
	admin.User, admin.Role = "telegram:2", toolgroups.RoleAdmin
	for name, c := range map[string]struct {
		zone       string // of the fact before
		tool, args string
		author, by toolgroups.Scope
		says       string
		line       string
		want, byUs string // the zones of both afterwards
	}{
		"added":                 {"", "update_memory", `{"memory":"Lives in Porto","content":"Lives in Porto","time_zone":"Europe/Lisbon"}`, me, me, "The user's times are those of Europe/Lisbon", "“Lives in Porto” (time zone Europe/Lisbon) instead", "Europe/Lisbon", "Europe/Lisbon"},
		"saved again with it":   {"", "save_memory", `{"content":"Lives in Porto","time_zone":"Europe/Lisbon"}`, me, me, "update_memory (group memory) with the same 'content' adds it", "", "", ""},
		"among words of others": {"", "save_memory", `{"content":"Likes tea","time_zone":"Asia/Tokyo"}`, me, read, "The user's times are those of Asia/Tokyo", "“Likes tea” (time zone Asia/Tokyo)", "Asia/Tokyo", "Asia/Tokyo"},
		"the same":              {"Europe/Lisbon", "save_memory", `{"content":"Lives in Porto","time_zone":"Europe/Lisbon"}`, me, me, "Nothing has to be saved", "", "Europe/Lisbon", "Europe/Lisbon"},
		"a corrected text":      {"Europe/Lisbon", "update_memory", `{"memory":"Lives in Porto","content":"Lives in Porto, in the centre"}`, me, me, "Its time zone is still Europe/Lisbon", "in the centre” instead", "Europe/Lisbon", "Europe/Lisbon"},
		"nothing to correct":    {"Europe/Lisbon", "update_memory", `{"memory":"Lives in Porto","content":"Lives in Porto"}`, me, me, "Nothing has to be saved", "", "Europe/Lisbon", "Europe/Lisbon"},
		"another's fact":        {"Europe/Lisbon", "update_memory", `{"memory":"Lives in Porto","content":"Lives in Tokyo","time_zone":"Asia/Tokyo"}`, ann, admin, "The times of the person who had it saved are those of Asia/Tokyo from now on, not the user's.", "“Lives in Tokyo” (time zone Asia/Tokyo) instead", "Asia/Tokyo", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, openStore(t))
			if _, _, err := b.Save(t.Context(), c.author, "", "Lives in Porto", c.zone); err != nil {
				t.Fatal(err)
			}
			tool, err := b.Tool()
			if err != nil {
				t.Fatal(err)
			}
			if group, err := b.Group(); err != nil {
				t.Fatal(err)
			} else if c.tool != tool.Name {
				tool = group.Tools[0]
			}
			res, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Name: tool.Name, Arguments: []byte(c.args), Scope: c.by})
			if fault != nil {
				res.Text = fault.Message
			}
			if !strings.Contains(res.Text, c.says) {
				t.Errorf("the model is told %q, want %q", res.Text, c.says)
			}
			line := ""
			for _, one := range res.Announced {
				line += one.Text
			}
			if !strings.Contains(line, c.line) || (line == "") != (c.line == "") {
				t.Errorf("the line says %q, want %q", line, c.line)
			}
			if got, byUs := b.ZoneOf(t.Context(), c.author), b.ZoneOf(t.Context(), c.by); got != c.want || byUs != c.byUs {
				t.Errorf("the zones are %q and %q, want %q and %q", got, byUs, c.want, c.byUs)
			}
		})
	}
}
