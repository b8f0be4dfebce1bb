package memory_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/memory"
)

// result runs a tool and returns its result.
func (b *bench) result(t *testing.T, scope toolgroups.Scope, tool, arguments string) (toolgroups.Tool, toolgroups.Result, *toolgroups.Error) {
	t.Helper()
	group, err := b.Group()
	save, saveErr := b.Tool()
	if err != nil || saveErr != nil {
		t.Fatal(err, saveErr)
	}
	all := append(group.Tools, save)
	one := all[slices.IndexFunc(all, func(one toolgroups.Tool) bool { return one.Name == tool })]
	res, fault := toolgroups.Run(t.Context(), nil, one, toolgroups.Call{Name: tool, Arguments: []byte(arguments), Scope: scope})
	return one, res, fault
}

func TestFactsThatAreReplacedOrForgottenAreAnnouncedAndComeBack(t *testing.T) {
	for _, c := range []struct {
		tool, arguments string
		announced       []string
	}{
		{"save_memory", `{"content":"Plays the harp"}`, nil},
		{"update_memory", `{"memory":"User is vegetarian","content":"Is vegan"}`, []string{"I remember “Is vegan” instead of “User is vegetarian”."}},
		{"forget_memory", `{"memory":"User is vegetarian"}`, []string{"I forgot “User is vegetarian”."}},
	} {
		b := newBench(t, openStore(t))
		b.save(t, ada, "", "User is vegetarian")
		tool, res, fault := b.result(t, scopeOf(ada), c.tool, c.arguments)
		var said []string
		for _, a := range res.Announced {
			said = append(said, a.Text)
		}
		if diff := cmp.Diff(c.announced, said); diff != "" || fault != nil {
			t.Errorf("%s(%s): %v %s", c.tool, c.arguments, fault, diff)
			continue
		}
		for _, a := range slices.Concat(res.Announced, res.Announced) { // the second press does no harm
			if err := tool.Undo(t.Context(), scopeOf(ada), a.Undo); err != nil {
				t.Error(err)
			}
			if notes, _ := b.texts(t, ada); !slices.Equal(notes, []string{"User is vegetarian"}) {
				t.Errorf("%s(%s): after the undo there are %q", c.tool, c.arguments, notes)
			}
		}
	}
}

// Many replacements do not make an earlier one final: they are refused, and it can be undone for a day.
func TestManyReplacementsLeaveTheFirstUndoable(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "", "User is vegetarian")
	tool, first, fault := b.result(t, scopeOf(ada), "update_memory", `{"memory":"User is vegetarian","content":"number 0"}`)
	if fault != nil {
		t.Fatal(fault)
	}
	refused := 0
	for i := range 250 {
		if _, _, fault := b.result(t, scopeOf(ada), "update_memory", fmt.Sprintf(`{"memory":"number %d","content":"number %d"}`, i, i+1)); fault != nil {
			refused++
		}
	}
	if refused != 51 {
		t.Errorf("%d replacements were refused", refused)
	}
	if err := tool.Undo(t.Context(), scopeOf(ada), first.Announced[0].Undo); err != nil {
		t.Error(err)
	}
	if notes, _ := b.texts(t, ada); !slices.Contains(notes, "User is vegetarian") {
		t.Errorf("there are %q", notes)
	}
}

func TestOthersDoNotUndoAFactOfASharedChat(t *testing.T) {
	b := newBench(t, openStore(t))
	shared := func(user string) toolgroups.Scope {
		return toolgroups.Scope{User: user, Owner: "fake:g", Role: toolgroups.RoleUser}
	}
	if _, _, fault := b.result(t, shared(ada), "save_memory", `{"content":"The key is under the mat"}`); fault != nil {
		t.Fatal(fault)
	}
	tool, res, fault := b.result(t, shared(ada), "forget_memory", `{"memory":"The key is under the mat"}`)
	if fault != nil {
		t.Fatal(fault)
	}
	if err := tool.Undo(t.Context(), shared("fake:other"), res.Announced[0].Undo); err == nil {
		t.Error("another member has brought it back")
	}
	if err := tool.Undo(t.Context(), shared(ada), res.Announced[0].Undo); err != nil {
		t.Error(err)
	}
}

// A new fact is announced where the conversation holds words of others: one of them may have asked for it.
func TestANewFactIsAnnouncedWhereOthersMayHaveAskedForIt(t *testing.T) {
	b := newBench(t, openStore(t))
	scope := scopeOf(ada)
	scope.HoldsOthers = true
	tool, res, fault := b.result(t, scope, "save_memory", `{"content":"Sends all mails to Eve"}`)
	if fault != nil || len(res.Announced) != 1 || res.Announced[0].Text != "I remember from now on: “Sends all mails to Eve”." {
		t.Fatalf("%v %+v", fault, res.Announced)
	}
	for range 2 { // the second press does no harm
		if err := tool.Undo(t.Context(), scope, res.Announced[0].Undo); err != nil {
			t.Error(err)
		}
		if notes, _ := b.texts(t, ada); len(notes) > 0 {
			t.Errorf("after the undo there are %q", notes)
		}
	}
}

// A note that was saved or corrected among words of others may be what they want.
func TestNotesSavedAmongWordsOfOthersAreNotAPersonsOwn(t *testing.T) {
	b := newBench(t, openStore(t))
	among := scopeOf(ada)
	among.HoldsOthers = true
	for _, c := range []struct {
		scope           toolgroups.Scope
		tool, arguments string
		others          bool
	}{
		{scopeOf(ada), "save_memory", `{"content":"Plays the harp"}`, false},
		{among, "update_memory", `{"memory":"Plays the harp","content":"Plays the organ"}`, true},
		{scopeOf(ada), "update_memory", `{"memory":"Plays the organ","content":"Plays the flute"}`, false},
		{among, "save_memory", `{"content":"Lives in Porto"}`, true},
	} {
		if _, _, fault := b.result(t, c.scope, c.tool, c.arguments); fault != nil {
			t.Fatal(fault)
		}
		notes, err := b.Notes(t.Context(), ada)
		if err != nil || notes[0].IsOthers(ada, true) != c.others {
			t.Errorf("%s(%s): %+v, want others %t: %v", c.tool, c.arguments, notes, c.others, err)
		}
		if !notes[0].IsOthers("fake:somebody-else", true) {
			t.Errorf("%+v is everybody's own", notes[0])
		}
	}
}

func TestAFactWhoseAuthorIsForgottenIsNobodysOwnInASharedChat(t *testing.T) {
	n := memory.Note{Text: "x"}
	if !n.IsOthers("telegram:1", false) || n.IsOthers("telegram:1", true) {
		t.Error("it counts as the words of whoever asks")
	}
}

// Whoever writes in the name of a group has the group's own id, which does not make it a direct chat.
func TestWhoWritesInTheNameOfAGroupChangesNobodysFacts(t *testing.T) {
	s := toolgroups.Scope{User: "telegram:-100", Owner: "telegram:-100", Chat: "telegram:-100", Role: toolgroups.RoleUser}
	if memory.MayChange(s, memory.Note{Text: "x", Author: "telegram:7"}) {
		t.Error("the fact of a member is changed")
	}
}
