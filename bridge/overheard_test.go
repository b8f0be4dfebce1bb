package bridge_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
)

// overheard is a bridge that listens in a group, where Bob (6), whom it does not know unless he is
// allowed, has said something to others, and Ann (1) has asked twice.
func overheard(t *testing.T, allow ...string) (r *harness, shown func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	think := func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		last := turn.History[len(turn.History)-1]
		mu.Lock()
		all = append(all, last.QuotedText())
		mu.Unlock()
		return echo(ctx, turn)
	}
	r = newHarness(t, think, func(cfg *bridge.Config) {
		cfg.Access = access.Access{Admins: []string{"fake:1"}, Allow: allow}
	})
	r.accept(group("1", "1", "/observe on"))
	r.platform.wait(t, 1)
	r.accept(heardOf("2", "the marmot is blue"))
	r.accept(group("3", "1", "which colour?"))
	r.platform.wait(t, 2)
	r.accept(group("4", "1", "and again?"))
	r.platform.wait(t, 3)
	shown = func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
	if first := shown()[0]; strings.Count(first, "> the marmot is blue") != 1 {
		t.Fatalf("Ann's question comes with %q", first)
	}
	return r, shown
}

func heardOf(id, text string) chats.Message {
	m := group(id, "6", text)
	m.Kind, m.Time = chats.KindAmbient, time.Now()
	return m
}

// What the bot may have said itself is left out of what members pass on: heard as theirs, it would vouch for its addresses.
func TestWhatTheBotSaidIsNotHeardOfMembers(t *testing.T) {
	r, shown := overheard(t)
	m := heardOf("5", "look")
	m.Quoted = []chats.Quoted{
		{Kind: chats.RefForward, FromBot: true, By: "OneClaw", Text: "the ibex is red"},
		{Kind: chats.RefForward, AuthorUnknown: true, By: "News", Text: "the lynx is grey"},
		{Kind: chats.RefForward, By: "Bob", Text: "the otter is brown"},
	}
	r.accept(m)
	r.accept(group("6", "1", "which colours?"))
	r.platform.wait(t, 4)
	all := shown()
	if last := all[len(all)-1]; !strings.Contains(last, "otter") || strings.Contains(last, "ibex") || strings.Contains(last, "lynx") {
		t.Errorf("a model is shown %q", last)
	}
}

// People are told in plain words that the bot also reads what is not for it, and when it does not.
func TestObserveSaysWhatIsRead(t *testing.T) {
	r := newHarness(t, echo, func(cfg *bridge.Config) { cfg.Access.Admins = []string{"fake:1"} })
	const also, only = "also read messages here that are not for me", "only the messages here that are for me"
	for n, tt := range []struct{ command, want string }{
		{"/observe", only}, {"/observe on", also}, {"/observe", also}, {"/observe off", "no longer read messages here that are not for me"}, {"/observe off", only},
	} {
		wantText(t, r.say(group(fmt.Sprint(n), "1", tt.command), n+1), tt.want)
	}
}

// A message that was sent before /observe on, but arrives after it, is not kept.
func TestWhatWasSaidBeforeTheBotListensIsNotKept(t *testing.T) {
	r, _ := overheard(t)
	said := heardOf("5", "the badger is red")
	for i, command := range []string{"/observe off", "/observe on"} {
		m := group(fmt.Sprint(6+i), "1", command)
		m.Time = said.Time.Add(time.Second)
		r.accept(m)
		r.platform.wait(t, 4+i)
	}
	r.accept(said)
	if found := placesOf(t, r.cfg.Store, "badger"); len(found) > 0 {
		t.Errorf("it stands in %q", found)
	}
	said.ID, said.Time = "8", said.Time.Add(2*time.Second)
	r.accept(said)
	if found := placesOf(t, r.cfg.Store, "badger"); len(found) != 1 {
		t.Errorf("what was said since stands in %q", found)
	}
}

// What was heard is in its own place alone, so it is in no conversation, and in no copy of one.
func TestWhatIsOverheardIsInNoConversation(t *testing.T) {
	r, _ := overheard(t)
	found := placesOf(t, r.cfg.Store, "marmot")
	if len(found) != 1 || !strings.HasPrefix(found[0], "heard/") {
		t.Errorf("it stands in %q", found)
	}
}

func TestWhatIsOverheardGoesWithItsEnd(t *testing.T) {
	for _, command := range []string{"/observe off", "/clear"} {
		r, shown := overheard(t)
		r.accept(group("5", "1", command))
		r.platform.wait(t, 4)
		if found := placesOf(t, r.cfg.Store, "marmot"); len(found) > 0 {
			t.Errorf("after %s it stands in %q", command, found)
		}
		r.accept(group("6", "1", "what was it?"))
		r.platform.wait(t, 5)
		if all := shown(); strings.Contains(all[len(all)-1], "marmot") {
			t.Errorf("after %s a model is shown %q", command, all[len(all)-1])
		}
	}
}

func TestWhatIsOverheardGoesWhenItIsDeleted(t *testing.T) {
	for _, thread := range []string{"", "2"} {
		r, _ := overheard(t)
		gone := heardOf("2", "")
		gone.Kind, gone.Chat.Thread = chats.KindDelete, thread
		r.accept(gone)
		if found := placesOf(t, r.cfg.Store, "marmot"); len(found) > 0 {
			t.Errorf("in the thread %q: it stands in %q", thread, found)
		}
		r.stop()
	}
}

func TestWhatIsOverheardGoesWithItsSpeaker(t *testing.T) {
	t.Run("who is let in", func(t *testing.T) {
		r, _ := overheard(t, "fake:6")
		r.accept(from("6", "5", "/forget"))
		card := r.platform.wait(t, 4)[3]
		press := pressOn(card, "p1", "6", card.button(t, "Forget me"))
		press.Direct = true
		r.accept(press)
		r.platform.until(t, "the end of the question", func(all []sent) bool {
			return slices.ContainsFunc(all, func(s sent) bool { return s.text == gone })
		})
		if found := placesOf(t, r.cfg.Store, "marmot"); len(found) > 0 {
			t.Errorf("it stands in %q", found)
		}
	})
	t.Run("who was let in, and is removed", func(t *testing.T) {
		r, _ := overheard(t, "fake:6")
		r.say(from("6", "5", "hello"), 4)
		r.stop()
		r.cfg.Access.Allow = nil
		r.start()
		wantText(t, r.say(from("6", "6", "/forget"), 5), "If I could talk to you before, what you asked me then is still here")
	})
	t.Run("a stranger", func(t *testing.T) {
		r, shown := overheard(t)
		r.stop()
		var erased atomic.Int32
		r.cfg.Hooks.OnErased = func(context.Context) error { erased.Add(1); return nil }
		r.start()
		wantText(t, r.say(from("6", "5", "/forget"), 4), "I have forgotten what I heard you say in groups. Your messages to me here are deleted within a week.")
		if found := placesOf(t, r.cfg.Store, "marmot"); len(found) > 0 {
			t.Errorf("it stands in %q", found)
		}
		if erased.Load() == 0 {
			t.Error("nobody is told that something is gone")
		}
		r.accept(heardOf("7", "the marmot is green"))
		r.accept(from("6", "8", "/forget"))
		r.accept(group("9", "1", "which colour?"))
		r.platform.wait(t, 5)
		if all := shown(); strings.Contains(all[len(all)-1], "marmot") {
			t.Errorf("a model is shown %q", all[len(all)-1])
		}
	})
}
