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
		{"Help", "In every kind of chat /help is answered with the commands, and not by the model.", testHelp},
		{"Stop", "In every kind of chat /stop ends the current answer and drops the messages that wait behind it.", testStop},
		{"Clear", "After a /clear by a user who may clear, the model sees nothing of the conversation; other conversations are unchanged.", testClear},
		{"Undo", "After an undo, by the button or the command, the conversation from before the /clear continues. Only users who may clear can undo, and pressing twice changes nothing.", testUndo},
		{"ClearIsRefused", "In a shared chat, and in a thread that another user began, only an administrator may clear.", testClearIsRefused},
		{"Confides", "Answers to personal commands in a shared chat are shown only to the user who sent them, if the platform can do that.", testConfides},
		{"Strangers", "A stranger gets one notice, which contains the id to allow, and never reaches the model.", testStrangers},
	}
}

// wantContains checks that a message contains all the words, ignoring case.
func (w *world) wantContains(s Shown, words ...string) {
	w.t.Helper()
	for _, word := range words {
		if !strings.Contains(strings.ToLower(s.Text), strings.ToLower(word)) {
			w.t.Errorf("%q does not contain %q", s.Text, word)
		}
	}
}

func testHelp(t testing.TB, w *world) {
	w.respond = func(_ context.Context, said []string) string {
		t.Errorf("the model was asked %q", said)
		return "?"
	}
	w.start()
	for _, place := range w.openAll() {
		w.say(place, "/help")
		w.wantContains(w.awaitShown(place, 1)[0], "For example:", "stop stops me", "clear starts a new conversation", "help more")
	}
}

func testStop(t testing.TB, w *world) {
	g := newGate()
	w.respond = g.think
	w.start()
	for _, place := range w.openAll() {
		w.say(place, "slow")
		waitFor(t, "the slow one to reach the model", g.reached)
		w.say(place, "behind it")
		w.say(place, "/stop")
		got := w.awaitSettled(place)
		if len(got) != 1 {
			t.Fatalf("shown: %q, want the answer to /stop alone", texts(got))
		}
		w.wantContains(got[0], "stopped", "one waiting message was dropped")
	}
}

func testClear(t testing.TB, w *world) {
	w.start()
	places := w.openAll()
	untouched := w.open(thread, w.harness.Admin)
	w.say(untouched, "kept")
	for i, place := range places {
		by := w.harness.Admin
		if i == 0 {
			by = w.harness.Member // the direct chat is the member's
		}
		w.say(place, "forget this")
		w.awaitShown(place, 1)
		w.harness.Say(place, by, "/clear")
		w.wantContains(w.awaitShown(place, 2)[1], "cleared")
		w.say(place, recall)
		w.want(w.awaitShown(place, 3)[2:], recallReply())
	}
	w.say(untouched, recall)
	w.want(w.awaitShown(untouched, 2), reply("kept"), recallReply("kept"))
}

func testUndo(t testing.TB, w *world) {
	presser, ok := w.harness.Service.(Presser)
	if !ok {
		t.Skip("the platform shows no buttons")
	}
	w.start()
	for i, kind := range []Kind{Shared, Direct, thread} {
		place := w.open(kind, w.harness.Admin)
		by := func(text string) { w.harness.Say(place, w.harness.Admin, text) }
		by("remember this")
		w.awaitShown(place, 1)
		by("/clear")
		card := w.awaitShown(place, 2)[1]
		w.wantContains(card, "cleared", "undo")
		if len(card.Buttons) == 0 {
			t.Fatalf("the confirmation has no button: %+v", card)
		}
		if i == 0 {
			presser.Press(place, w.harness.Member, card.ID, card.Buttons[0][0].Data)
			w.await("the refusal", func(v View) bool { return len(v.Toasts) > 0 })
		}
		if kind == thread {
			by("/undo")
		} else {
			presser.Press(place, w.harness.Admin, card.ID, card.Buttons[0][0].Data)
			presser.Press(place, w.harness.Admin, card.ID, card.Buttons[0][0].Data)
		}
		w.wantContains(w.awaitShown(place, 3)[2], "is back")
		by(recall)
		w.want(w.awaitShown(place, 4)[3:], recallReply("remember this"))
	}
}

func testClearIsRefused(t testing.TB, w *world) {
	w.start()
	for _, kind := range []Kind{Shared, thread} {
		place := w.open(kind, w.harness.Admin)
		w.harness.Say(place, w.harness.Admin, "remember this")
		w.awaitShown(place, 1)
		w.say(place, "/clear")
		before := w.awaitConfided(place, 1, "sorry, only an administrator")
		w.say(place, recall)
		w.want(w.awaitShown(place, before+1)[before:], recallReply("remember this"))
	}
}

// awaitConfided waits until the member has received a text: ephemerally if the platform can do that,
// otherwise in the place, after behind other messages. It returns the number of messages in the place
// then.
func (w *world) awaitConfided(place Place, behind int, text string) int {
	w.t.Helper()
	if _, ok := w.cfg.Platforms[0].(chats.EphemeralSender); !ok {
		w.wantContains(w.awaitShown(place, behind+1)[behind], text)
		return behind + 1
	}
	v := w.await("the ephemeral message", func(v View) bool {
		return slices.ContainsFunc(v.Toasts, func(t Toast) bool { return strings.Contains(strings.ToLower(t.Text), text) })
	})
	for _, toast := range v.Toasts {
		if toast.To != w.harness.Member {
			w.t.Errorf("%s was shown %q", toast.To, toast.Text)
		}
	}
	if got := len(v.inPlace(place)); got != behind {
		w.t.Errorf("all users see %d messages, want %d", got, behind)
	}
	return behind
}

// testConfides checks that the personal commands of one user are answered to that user alone.
func testConfides(_ testing.TB, w *world) {
	w.start()
	for n, kind := range []Kind{Shared, thread} {
		place := w.open(kind, w.harness.Member)
		w.say(place, "hello "+strconv.Itoa(n))
		w.awaitShown(place, 1)
		w.say(place, "/whoami")
		behind := w.awaitConfided(place, 1, "you may talk to me")
		w.say(place, "/tools")
		w.awaitConfided(place, behind, "tool")
	}
	direct := w.open(Direct, w.harness.Member)
	w.say(direct, "/whoami")
	w.wantContains(w.awaitShown(direct, 1)[0], "you may talk to me")
}

func testStrangers(t testing.TB, w *world) {
	w.respond = func(ctx context.Context, said []string) string {
		if strings.Contains(fmt.Sprint(said), "let me in") {
			t.Errorf("the model was asked %q", said)
		}
		return echo(ctx, said)
	}
	w.start()
	direct := w.open(Direct, w.harness.Stranger)
	shared, thread := w.open(Shared, w.harness.Member), w.open(thread, w.harness.Stranger)
	for range 2 {
		w.harness.Say(direct, w.harness.Stranger, "let me in")
	}
	name := w.cfg.Platforms[0].Name()
	w.wantContains(w.awaitShown(direct, 1)[0], name+":"+w.harness.Stranger)
	for _, place := range []Place{shared, thread} {
		w.harness.Say(place, w.harness.Stranger, "let me in")
		w.harness.Say(place, w.harness.Stranger, "/clear")
		w.want(w.awaitSettled(place))
		w.say(place, recall)
		for _, s := range w.awaitSettled(place) {
			if strings.Contains(s.Text, "let me in") {
				t.Errorf("the model was shown the stranger's message: %q", s.Text)
			}
		}
	}
	if got := w.awaitShown(direct, 1); len(got) != 1 {
		t.Errorf("the stranger was shown %q, want one message", texts(got))
	}
}
