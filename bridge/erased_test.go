package bridge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

const daySeconds = 24 * 3600

// wantGroups checks what a conversation restores, from its labelled records and from all of them.
func (r *harness) wantGroups(when, log string, want ...string) {
	r.t.Helper()
	if got := r.loadedIn(log); !slices.Equal(got, want) {
		r.t.Errorf("%s %q are loaded in %s, want %q", when, got, log, want)
	}
}

func (r *harness) wantNoSecrets() {
	r.t.Helper()
	if found := placesOf(r.t, r.cfg.Store, "secret"); len(found) > 0 {
		r.t.Errorf("there are still secrets in %q", found)
	}
}

// Groups survive until /clear, also where all is gone that was said when they were loaded (B3).
func TestGroupsStayLoadedWhenWhatWasSaidHasGoneByItsAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &picky{}
		r := newHarness(t, p.think, func(cfg *bridge.Config) { cfg.Limits.HistoryDays = 30 })
		r.accept(direct("1", "call secret pdf"))
		r.platform.wait(t, 1)
		pass(t, 20*daySeconds)
		r.accept(direct("2", "later"))
		r.platform.wait(t, 2)
		pass(t, 12*daySeconds)
		r.wantNoSecrets()
		r.wantGroups("after 32 days", "fake:1/1", "pdf")
		r.accept(direct("3", "now"))
		r.platform.wait(t, 3)
		if view := p.seen[len(p.seen)-1]; len(view) != 3 || view[0].Text != "later" {
			t.Errorf("the model is shown %+v", view)
		}
		pass(t, 40*daySeconds)
		r.restart()
		r.wantGroups("after 40 silent days", "fake:1/1", "pdf")
		r.accept(direct("4", "call again xyz"))
		r.platform.wait(t, 4)
		r.wantGroups("with another one", "fake:1/1", "pdf", "xyz")
		if view := p.seen[len(p.seen)-1]; len(view) != 1 {
			t.Errorf("the model is shown %+v", view)
		}
		pass(t, 40*daySeconds)
		r.accept(direct("5", "/clear"), direct("6", "what now?"))
		r.platform.wait(t, 6)
		if got := r.platform.texts()[4]; !strings.Contains(got, "cleared") {
			t.Errorf("answered %q", got)
		}
		r.wantGroups("after /clear", "fake:1/2")
		pass(t, 2*daySeconds)
		for log, err := range r.cfg.Store.Logs(t.Context(), storage.Range{}) {
			if err != nil || log == "fake:1/1" {
				t.Error("the log of what was cleared is still there")
			}
		}
	})
}

// The groups of a shared chat are the chat's, whoever asked for them (B3).
func TestForgettingAPersonLeavesTheGroupsOfASharedChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &picky{}
		r := newHarness(t, p.think, cupboard(t, 4))
		ask := func(n int, m chats.Message) []sent {
			r.accept(m)
			return r.platform.wait(t, n)
		}
		ask(1, group("1", "1", "call secret g1"))
		ask(2, group("2", "6", "Bob has his say"))
		panel := ask(3, group("3", "6", "/tools"))[2]
		load := pressOn(panel, "p1", "1", panel.button(t, "Group 2"))
		load.UserName = "Secretary"
		r.accept(load)
		r.platform.until(t, "the load", func(all []sent) bool { return strings.Contains(all[2].text, "Loaded: Group 1, Group 2") })
		card := ask(4, direct("4", "/forget"))[3]
		r.accept(pressOn(card, "p2", "1", card.button(t, "Forget me")))
		r.platform.wait(t, 5)
		pass(t, 60)
		r.wantNoSecrets()
		r.wantGroups("after /forget", "fake:g/1", "g1", "g2")
		ask(6, group("5", "6", "and now?"))
		if view := p.seen[len(p.seen)-1]; len(view) != 3 || view[0].Text != "Bob has his say" {
			t.Errorf("the model is shown %+v", view)
		}
	})
}

// The receipt of a press, and of the job that it begins, is written after its effect, by then with the name
// of the user, who may have asked nothing in this chat.
func TestForgettingAPersonWaitsForTheirPresses(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]struct {
		asker, command, button string
		held                   string // the kind of the job whose receipt is not written before the confirmation
		slow                   string // what Bob asks before the press; it is answered after the confirmation
	}{
		"of a user who asked here":          {"1", "/tools", "Group 2", "press", ""},
		"of a user who never asked":         {"6", "/clear", "↩ Undo", "press", ""},
		"that undo a /clear":                {"6", "/clear", "↩ Undo", "undo", ""},
		"that load a group after an answer": {"6", "/tools", "Group 2", "", "slow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				goOn := make(chan struct{})
				s := newSlow()
				r := newHarness(t, s.think, cupboard(t, 4), func(cfg *bridge.Config) {
					cfg.Access.Admins = []string{"fake:1", "fake:6"}
					cfg.Store = &faulty{Store: cfg.Store, write: func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
						if slices.ContainsFunc(ops, func(op storage.Op) bool {
							return op.Kind == storage.KindPut && strings.HasPrefix(op.Key, receipts.Prefix+"fake:g/") && strings.HasSuffix(op.Key, "/"+with.held)
						}) {
							<-goOn
						}
						return do()
					}}
				})
				r.accept(group("1", with.asker, "hello"))
				r.platform.wait(t, 1)
				r.accept(group("2", with.asker, with.command))
				card := r.platform.wait(t, 2)[1]
				if with.slow != "" {
					r.accept(group("3", "6", with.slow))
					<-s.asked
				}
				press := pressOn(card, "p1", "1", card.button(t, with.button))
				press.UserName = "Secretary"
				r.accept(press)
				pass(t, 1)
				r.forget(t)
				pass(t, 10)
				close(goOn)
				close(s.free)
				pass(t, 60)
				found := slices.DeleteFunc(placesOf(t, r.cfg.Store, "secret"), func(place string) bool { return strings.HasPrefix(place, "audit/") })
				if len(found) > 0 {
					t.Errorf("there are still secrets in %q", found)
				}
			})
		})
	}
}

// The beginning that was erased is no reason to take a conversation for one that has not begun.
func TestClearEndsAConversationWhoseBeginningWasErased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &picky{}
		r := newHarness(t, p.think, func(cfg *bridge.Config) { cfg.Limits.HistoryDays = 30 })
		for n, text := range []string{"one", "two"} {
			r.accept(direct(fmt.Sprint(n), text))
			r.platform.wait(t, n+1)
			pass(t, 20*daySeconds)
		}
		r.accept(direct("3", "/clear"), direct("4", "what did I say?"))
		r.platform.wait(t, 4)
		if view := p.seen[len(p.seen)-1]; len(view) != 1 {
			t.Errorf("after /clear the model is shown %+v", view)
		}
	})
}
