package bridge_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
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
		r.platform.until(t, "the load", func(all []sent) bool { return strings.Contains(all[2].text, "Loaded: g1, g2") })
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

// The receipt of a press is written after its effect, by then with the name of the user.
func TestForgettingAPersonWaitsForTheirPresses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closing, goOn := make(chan struct{}), make(chan struct{})
		hold := sync.OnceFunc(func() {
			close(closing)
			<-goOn
		})
		r := newHarness(t, (&picky{}).think, cupboard(t, 4), func(cfg *bridge.Config) {
			cfg.Store = &faulty{Store: cfg.Store, write: func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
				if slices.ContainsFunc(ops, func(op storage.Op) bool {
					return op.Kind == storage.KindPut && op.Key == receipts.Prefix+"fake:g/p1/press"
				}) {
					hold()
				}
				return do()
			}}
		})
		r.accept(group("1", "1", "hello"))
		r.platform.wait(t, 1)
		r.accept(group("2", "6", "/tools"))
		panel := r.platform.wait(t, 2)[1]
		load := pressOn(panel, "p1", "1", panel.button(t, "Group 2"))
		load.UserName = "Secretary"
		r.accept(load)
		<-closing
		r.accept(direct("3", "/forget"))
		card := r.platform.wait(t, 3)[2]
		r.accept(pressOn(card, "p2", "1", card.button(t, "Forget me")))
		pass(t, 10)
		close(goOn)
		pass(t, 60)
		r.wantNoSecrets()
	})
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
