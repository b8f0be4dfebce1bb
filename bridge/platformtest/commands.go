package platformtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
)

func commandProperties() []property {
	return []property{
		{"Help", "Everywhere /help is answered with the commands, and not by the model.", helps},
		{"Stop", "Everywhere /stop ends the answer that is being worked on and drops what waits behind it.", stops},
		{"Clear", "After a /clear by whoever may, nothing of the conversation is left; other conversations keep theirs.", clears},
		{"Undo", "After an undo, by the button or the command, the conversation from before the /clear goes on; only whoever may clear may do that, and pressed twice it changes nothing.", undoes},
		{"ClearIsRefused", "In a shared chat, and in a thread that somebody else began, only an administrator may clear.", refusesClear},
		{"Confides", "What one person asked about themselves in a shared chat is told to that person alone, where the platform can do that.", confides},
		{"Strangers", "A stranger is told once, in one message with the id to allow, and never reaches the model.", turnsAway},
	}
}

// contains checks that a message contains all the words, ignoring case.
func (w *world) contains(s Shown, words ...string) {
	w.t.Helper()
	for _, word := range words {
		if !strings.Contains(strings.ToLower(s.Text), strings.ToLower(word)) {
			w.t.Errorf("%q does not contain %q", s.Text, word)
		}
	}
}

func helps(t testing.TB, w *world) {
	w.think = func(_ context.Context, said []string) string {
		t.Errorf("the model was asked %q", said)
		return "?"
	}
	w.start()
	for _, place := range w.everywhere() {
		w.say(place, "/help")
		w.contains(w.shown(place, 1)[0], "help – ", "clear – ", "stop – ", "status – ")
	}
}

func stops(t testing.TB, w *world) {
	g := newGate()
	w.think = g.think
	w.start()
	for _, place := range w.everywhere() {
		w.say(place, "slow")
		until(t, "the slow one to reach the model", g.reached)
		w.say(place, "behind it")
		w.say(place, "/stop")
		got := w.settled(place)
		if len(got) != 1 {
			t.Fatalf("there stands %q, want the answer to /stop alone", texts(got))
		}
		w.contains(got[0], "stopped", "one waiting message was dropped")
	}
}

func clears(t testing.TB, w *world) {
	w.start()
	places := w.everywhere()
	untouched := w.open(Thread, w.harness.Admin)
	w.say(untouched, "kept")
	for i, place := range places {
		by := w.harness.Admin
		if i == 0 {
			by = w.harness.Member // the direct chat is the member's
		}
		w.say(place, "forget this")
		w.shown(place, 1)
		w.harness.Say(place, by, "/clear")
		w.contains(w.shown(place, 2)[1], "cleared")
		w.say(place, recall)
		w.want(w.shown(place, 3)[2:], recalled())
	}
	w.say(untouched, recall)
	w.want(w.shown(untouched, 2), reply("kept"), recalled("kept"))
}

func undoes(t testing.TB, w *world) {
	presser, ok := w.harness.Service.(Presser)
	if !ok {
		t.Skip("the platform shows no buttons")
	}
	w.start()
	for i, kind := range []Kind{Shared, Direct, Thread} {
		place := w.open(kind, w.harness.Admin)
		by := func(text string) { w.harness.Say(place, w.harness.Admin, text) }
		by("remember this")
		w.shown(place, 1)
		by("/clear")
		card := w.shown(place, 2)[1]
		w.contains(card, "cleared", "undo")
		if len(card.Buttons) == 0 {
			t.Fatalf("the confirmation has no button: %+v", card)
		}
		if i == 0 {
			presser.Press(place, w.harness.Member, card.ID, card.Buttons[0][0].Data)
			w.await("the refusal", func(v View) bool { return len(v.Toasts) > 0 })
		}
		if kind == Thread {
			by("/undo")
		} else {
			presser.Press(place, w.harness.Admin, card.ID, card.Buttons[0][0].Data)
			presser.Press(place, w.harness.Admin, card.ID, card.Buttons[0][0].Data)
		}
		w.contains(w.shown(place, 3)[2], "is back")
		by(recall)
		w.want(w.shown(place, 4)[3:], recalled("remember this"))
	}
}

func refusesClear(t testing.TB, w *world) {
	w.start()
	for _, kind := range []Kind{Shared, Thread} {
		place := w.open(kind, w.harness.Admin)
		w.harness.Say(place, w.harness.Admin, "remember this")
		w.shown(place, 1)
		w.say(place, "/clear")
		before := w.confided(place, 1, "sorry, only an administrator")
		w.say(place, recall)
		w.want(w.shown(place, before+1)[before:], recalled("remember this"))
	}
}

// confided waits until the member has received a text: ephemerally if the platform can do that, and
// otherwise in a message after this many others. It returns how many there are then.
func (w *world) confided(place Place, behind int, text string) int {
	w.t.Helper()
	if _, ok := w.cfg.Platforms[0].(chats.EphemeralSender); !ok {
		w.contains(w.shown(place, behind+1)[behind], text)
		return behind + 1
	}
	v := w.await("what the member alone is told", func(v View) bool {
		return slices.ContainsFunc(v.Toasts, func(t Toast) bool { return strings.Contains(strings.ToLower(t.Text), text) })
	})
	for _, toast := range v.Toasts {
		if toast.To != w.harness.Member {
			w.t.Errorf("%s was told %q", toast.To, toast.Text)
		}
	}
	if got := len(v.in(place)); got != behind {
		w.t.Errorf("everybody sees %d messages, want %d", got, behind)
	}
	return behind
}

// confides checks that the questions of one user are answered to that user alone.
func confides(_ testing.TB, w *world) {
	w.start()
	for n, kind := range []Kind{Shared, Thread} {
		place := w.open(kind, w.harness.Member)
		w.say(place, "hello "+strconv.Itoa(n))
		w.shown(place, 1)
		w.say(place, "/whoami")
		behind := w.confided(place, 1, "you may talk to me")
		w.say(place, "/tools")
		w.confided(place, behind, "tool")
	}
	direct := w.open(Direct, w.harness.Member)
	w.say(direct, "/whoami")
	w.contains(w.shown(direct, 1)[0], "you may talk to me")
}

func turnsAway(t testing.TB, w *world) {
	w.think = func(ctx context.Context, said []string) string {
		if strings.Contains(fmt.Sprint(said), "let me in") {
			t.Errorf("the model was asked %q", said)
		}
		return echo(ctx, said)
	}
	w.start()
	direct := w.open(Direct, w.harness.Stranger)
	shared, thread := w.open(Shared, w.harness.Member), w.open(Thread, w.harness.Stranger)
	for range 2 {
		w.harness.Say(direct, w.harness.Stranger, "let me in")
	}
	name := w.cfg.Platforms[0].Name()
	w.contains(w.shown(direct, 1)[0], name+":"+w.harness.Stranger)
	for _, place := range []Place{shared, thread} {
		w.harness.Say(place, w.harness.Stranger, "let me in")
		w.harness.Say(place, w.harness.Stranger, "/clear")
		w.want(w.settled(place))
		w.say(place, recall)
		for _, s := range w.settled(place) {
			if strings.Contains(s.Text, "let me in") {
				t.Errorf("the model was told what the stranger said: %q", s.Text)
			}
		}
	}
	if got := w.shown(direct, 1); len(got) != 1 {
		t.Errorf("the stranger was told %q, want one message", texts(got))
	}
}
