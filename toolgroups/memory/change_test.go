package memory_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/memory"
)

// use calls a tool of the group.
func (b *bench) use(t testing.TB, tool string, scope toolgroups.Scope, arguments string) (string, *toolgroups.Error) {
	t.Helper()
	group, err := b.Group()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(group.Tools, func(one toolgroups.Tool) bool { return one.Name == tool })
	res, fault := toolgroups.Run(t.Context(), nil, group.Tools[i], toolgroups.Call{Name: tool, Arguments: []byte(arguments), Scope: scope})
	return res.Text, fault
}

func (b *bench) texts(t testing.TB, owner string) (notes, removed []string) {
	t.Helper()
	list, gone, err := b.List(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list {
		notes = append(notes, n.Text)
	}
	for _, n := range gone {
		removed = append(removed, n.Text)
	}
	return notes, removed
}

// A fact is corrected or forgotten by its id or its text, and what was there can be brought back.
func TestFactsAreCorrectedAndForgotten(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "projects", "Builds a boat of oak")
	b.save(t, ada, "", "Likes tea")
	got, fault := b.use(t, "update_memory", scopeOf(ada), `{"memory": "builds a  BOAT of oak", "content": "Builds a boat of pine"}`)
	if fault != nil || got != "Updated. It took the place of 'Builds a boat of oak'." {
		t.Errorf("%q, %+v", got, fault)
	}
	notes, _, err := b.List(t.Context(), ada)
	if err != nil || len(notes) != 2 || notes[0].Text != "Builds a boat of pine" || notes[0].Section != "Projects" {
		t.Fatalf("%+v, %v", notes, err)
	}
	tea := notes[1].ID()
	if got, fault = b.use(t, "forget_memory", scopeOf(ada), `{"memory": "`+tea+`"}`); fault != nil || !strings.HasPrefix(got, "Forgotten: 'Likes tea'.") {
		t.Errorf("%q, %+v", got, fault)
	}
	for range 2 { // a repetition changes nothing
		if _, err := b.Remove(t.Context(), scopeOf(ada), tea); err != nil {
			t.Error(err)
		}
	}
	if notes, removed := b.texts(t, ada); !slices.Equal(notes, []string{"Builds a boat of pine"}) || !slices.Equal(removed, []string{"Likes tea", "Builds a boat of oak"}) {
		t.Errorf("remembered %q, removed %q", notes, removed)
	}
	_, removed, _ := b.List(t.Context(), ada)
	for _, n := range removed {
		for range 2 {
			if _, err := b.Restore(t.Context(), scopeOf(ada), n.ID()); err != nil {
				t.Error(err)
			}
		}
	}
	if notes, _ := b.texts(t, ada); !slices.Equal(notes, []string{"Likes tea", "Builds a boat of oak"}) {
		t.Errorf("brought back: %q", notes)
	}
}

// A correction may concern capitals or the section alone.
func TestCapitalsAndTheSectionAreCorrected(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "", "Boss is ms mcdonald")
	for _, change := range []string{
		`{"memory": "Boss is ms mcdonald", "content": "Boss is Ms McDonald"}`,
		`{"memory": "Boss is Ms McDonald", "content": "Boss is Ms McDonald", "category": "profile"}`,
	} {
		if _, fault := b.use(t, "update_memory", scopeOf(ada), change); fault != nil {
			t.Errorf("%s: %+v", change, fault)
		}
	}
	if notes, _, err := b.List(t.Context(), ada); err != nil || len(notes) != 1 || notes[0].Text != "Boss is Ms McDonald" || notes[0].Section != "User Profile" {
		t.Errorf("%+v, %v", notes, err)
	}
}

// A save names the facts that it may contradict, so that the model has them forgotten.
func TestASaveNamesFactsThatItMayContradict(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "", "The cat is called Minka")
	b.save(t, ada, "", "Likes tea")
	notes, _, err := b.List(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	want := "Saved in Notes. If one of these is no longer true, forget it with forget_memory (group memory):\n" + notes[1].ID() + ": The cat is called Minka"
	if got := b.save(t, ada, "", "The cat is called Luna now"); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if notes, removed := b.texts(t, ada); len(notes) != 3 || len(removed) > 0 {
		t.Errorf("remembered %q, removed %q", notes, removed)
	}
}

// Bad input gets an error that says what to do, and changes nothing.
func TestBadChangesLoseNothing(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "", "The cat is called Minka")
	b.save(t, ada, "", "Likes tea")
	b.save(t, "telegram:2", "", "The dog is called Rex")
	mine, _, _ := b.List(t.Context(), ada)
	others, _, _ := b.List(t.Context(), "telegram:2")
	for name, c := range map[string]struct{ tool, args, code, says string }{
		"too long":        {"update_memory", `{"memory": "Likes tea", "content": "` + strings.Repeat("ж", 5_001) + `"}`, toolgroups.CodeInvalid, "1 to 5000 characters"},
		"empty":           {"update_memory", `{"memory": "Likes tea", "content": " "}`, toolgroups.CodeInvalid, "1 to 5000 characters"},
		"the same":        {"update_memory", `{"memory": "Likes tea", "content": " Likes tea "}`, memory.CodeDuplicate, "already"},
		"another's text":  {"update_memory", `{"memory": "Likes tea", "content": "The cat is called Minka"}`, memory.CodeDuplicate, "already"},
		"no id":           {"forget_memory", `{"memory": "aaaaaaaa"}`, memory.CodeNotFound, "There is no such memory here."},
		"blank":           {"forget_memory", `{"memory": ""}`, memory.CodeNotFound, "There is no such memory here."},
		"no memory":       {"forget_memory", `{}`, toolgroups.CodeInvalid, "memory"},
		"another person":  {"forget_memory", `{"memory": "` + others[0].ID() + `"}`, memory.CodeNotFound, "There is no such memory here."},
		"of their words":  {"forget_memory", `{"memory": "my cat's name"}`, memory.CodeNotFound, "\n" + mine[1].ID() + ": The cat is called Minka"},
		"another's words": {"update_memory", `{"memory": "The dog is called Rex", "content": "The dog is called Max"}`, memory.CodeNotFound, "There is no such memory here."},
	} {
		_, fault := b.use(t, c.tool, scopeOf(ada), c.args)
		if fault == nil || fault.Code != c.code || !strings.Contains(fault.Message, c.says) || strings.Contains(fault.Message, "Rex") {
			t.Errorf("%s: %+v", name, fault)
		}
	}
	if _, fault := b.use(t, "forget_memory", scopeOf("telegram:3"), `{"memory": "Likes tea"}`); fault == nil || fault.Message != "Nothing is remembered here." {
		t.Errorf("%+v", fault)
	}
	for owner, want := range map[string]int{ada: 2, "telegram:2": 1} {
		if notes, removed := b.texts(t, owner); len(notes) != want || len(removed) > 0 {
			t.Errorf("%s has %q and %q", owner, notes, removed)
		}
	}
}

// In a shared chat the person who had a fact saved may change it, and administrators.
func TestFactsOfAChatBelongToTheirAuthors(t *testing.T) {
	b := newBench(t, openStore(t))
	in := func(user string, role toolgroups.Role) toolgroups.Scope {
		return toolgroups.Scope{Owner: "telegram:-9", User: user, Role: role}
	}
	ann, bob, zoe := in("telegram:1", toolgroups.RoleUser), in("telegram:2", toolgroups.RoleUser), in("telegram:3", toolgroups.RoleAdmin)
	note, _, err := b.Save(t.Context(), ann, "", "The stand-up is at 9", "")
	if err != nil {
		t.Fatal(err)
	}
	id := note.ID()
	if _, _, err = b.Save(t.Context(), bob, "", "The stand-up is at 10", ""); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func() error{
		func() error { _, err := b.Remove(t.Context(), bob, id); return err },
		func() error { _, _, err := b.Update(t.Context(), bob, id, "", "The stand-up is off", ""); return err },
		func() error { return b.Check(t.Context(), bob, id) },
	} {
		if err := change(); !errors.Is(err, memory.ErrDenied) {
			t.Error(err)
		}
	}
	_, fault := b.use(t, "forget_memory", bob, `{"memory": "The stand-up is at 9"}`)
	if fault == nil || fault.Code != toolgroups.CodeDenied {
		t.Errorf("%+v", fault)
	}
	if _, err := b.Remove(t.Context(), zoe, id); err != nil {
		t.Error(err)
	}
	if _, err := b.Restore(t.Context(), bob, id); !errors.Is(err, memory.ErrDenied) {
		t.Error(err)
	}
	if _, err := b.Restore(t.Context(), ann, id); err != nil {
		t.Error(err)
	}
	// A person who is forgotten leaves facts to the chat, without a name.
	if err := b.Forget(t.Context(), "telegram:1"); err != nil {
		t.Fatal(err)
	}
	notes, _, err := b.List(t.Context(), "telegram:-9")
	if err != nil || len(notes) != 2 || notes[0].Author != "telegram:2" || notes[1].Author != "" {
		t.Errorf("%+v, %v", notes, err)
	}
	if _, err := b.Remove(t.Context(), ann, id); !errors.Is(err, memory.ErrDenied) {
		t.Error(err)
	}
}

// What was removed is gone from the store after a day, without another change.
func TestRemovedFactsAreDeletedAfterADay(t *testing.T) {
	store := openStore(t)
	b := newBench(t, store)
	b.save(t, ada, "", "Likes heliotrope")
	b.save(t, ada, "", "Likes tea")
	if _, err := b.Remove(t.Context(), scopeOf(ada), "Likes heliotrope"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		gone  bool
	}{{time.Hour, false}, {memory.UndoTime, true}} {
		b.clock = b.clock.Add(c.after)
		if err := b.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		entry, err := store.Get(t.Context(), "memory/"+ada)
		if err != nil || strings.Contains(string(entry.Value), "heliotrope") == c.gone {
			t.Errorf("after %s: %s, %v", c.after, entry.Value, err)
		}
	}
	if notes, removed := b.texts(t, ada); len(notes) != 1 || len(removed) != 0 {
		t.Errorf("remembered %q, removed %q", notes, removed)
	}
}

// What can be brought back moves with its chat.
func TestMoveKeepsRemovedFacts(t *testing.T) {
	b := newBench(t, openStore(t))
	scope := toolgroups.Scope{Owner: "telegram:-5", User: "telegram:1"}
	note, _, err := b.Save(t.Context(), scope, "", "Likes tea", "")
	if err == nil {
		_, err = b.Remove(t.Context(), scope, "Likes tea")
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Move(t.Context(), "telegram:-5", "telegram:-100"); err != nil {
			t.Fatal(err)
		}
	}
	scope.Owner = "telegram:-100"
	if _, err := b.Restore(t.Context(), scope, note.ID()); err != nil {
		t.Error(err)
	}
	if notes, removed := b.texts(t, "telegram:-5"); len(notes)+len(removed) != 0 {
		t.Errorf("left behind: %q, %q", notes, removed)
	}
}

// A forgotten fact is in no prompt any more, also in a conversation that began with it.
func TestForgottenFactsLeaveTheSnapshot(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "", "Likes tea")
	began := b.now()
	if got := b.snapshot(t, ada, began); !strings.Contains(got, "tea") {
		t.Fatal(got)
	}
	if _, err := b.Remove(t.Context(), scopeOf(ada), "Likes tea"); err != nil {
		t.Fatal(err)
	}
	if got := b.snapshot(t, ada, began); got != "" {
		t.Error(got)
	}
}
