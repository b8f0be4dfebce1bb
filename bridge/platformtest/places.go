package platformtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

func placeProperties() []property {
	return []property{
		{"Order", "Messages in one conversation are answered one after another, in the order in which they were sent.", testOrder},
		{"SideBySide", "While the model is busy in one conversation, all others are answered, including another thread of the same chat.", testSideBySide},
		{"Threads", "Answers appear in the place of their question, never elsewhere, and reply to no other message.", testThreads},
		{"Sessions", "Conversations share nothing: neither those of two chats, nor of two threads, nor of two users.", testSessions},
		{"Working", "Users see that the bot is working, and no longer see it once it has answered, was stopped or failed.", testWorking},
	}
}

func testOrder(_ testing.TB, w *world) {
	w.start()
	for _, place := range w.openAll() {
		var said, want []string
		for i := range 8 {
			text := fmt.Sprintf("message %d", i)
			said, want = append(said, text), append(want, reply(text))
			w.say(place, text)
		}
		w.say(place, recall)
		w.want(w.awaitShown(place, len(want)+1), append(want, recallReply(said...))...)
	}
}

func testSideBySide(t testing.TB, w *world) {
	g := newGate()
	w.respond = g.think
	w.start()
	places := w.openAll()
	for i, busy := range places {
		slow := fmt.Sprintf("slow %d", i)
		w.say(busy, slow)
		waitFor(t, slow+" to reach the model", g.reached)
		for _, other := range slices.Delete(slices.Clone(places), 0, i+1) {
			text := fmt.Sprintf("beside %d", i)
			w.say(other, text)
			w.want(w.awaitShown(other, i+1)[i:], reply(text))
		}
	}
	close(g.open)
	for i, place := range places {
		got := w.awaitShown(place, i+1)
		w.want(got[i:], reply(fmt.Sprintf("slow %d", i)))
	}
}

func testThreads(t testing.TB, w *world) {
	w.start()
	places := append(w.openAll(), w.open(Direct, w.harness.Admin))
	want := map[Place][]string{}
	asked := map[string]string{} // the id of the question, by its answer
	for round := range 3 {
		for i, place := range places {
			by := w.harness.Member
			if i == len(places)-1 {
				by = w.harness.Admin
			}
			text := fmt.Sprintf("question %d from place %d", round, i)
			asked[reply(text)] = w.harness.Say(place, by, text)
			want[place] = append(want[place], reply(text))
		}
	}
	for _, place := range places {
		got := w.awaitShown(place, len(want[place]))
		w.want(got, want[place]...)
		for i, text := range texts(got) {
			if to := got[i].ReplyTo; to != "" && to != asked[text] {
				t.Errorf("%q replies to %s, want %s", text, to, asked[text])
			}
		}
	}
}

func testSessions(t testing.TB, w *world) {
	w.start()
	places := append(w.openAll(), w.open(Shared, w.harness.Member))
	for i, place := range places {
		w.say(place, fmt.Sprintf("secret %d", i))
	}
	other := w.open(Direct, w.harness.Admin)
	w.harness.Say(other, w.harness.Admin, recall)
	w.want(w.awaitShown(other, 1), recallReply())
	for i, place := range places {
		secret := fmt.Sprintf("secret %d", i)
		w.say(place, recall)
		w.want(w.awaitShown(place, 2), reply(secret), recallReply(secret))
	}
}

func testWorking(t testing.TB, w *world) {
	g, breaks := newGate(), make(chan struct{})
	w.respond = func(ctx context.Context, said []string) string {
		if said[len(said)-1] == "break down" {
			<-breaks
			panic("broken down")
		}
		return g.think(ctx, said)
	}
	w.start()
	works := func(place Place, on bool) {
		t.Helper()
		w.await(fmt.Sprintf("the sign of working in %s to be %t", place, on), func(v View) bool {
			return slices.Contains(v.Working, place) == on
		})
	}
	for _, place := range []Place{w.open(thread, w.harness.Member), w.open(thread, w.harness.Admin)} {
		w.say(place, "slow one to stop")
		works(place, true)
		w.say(place, "/stop")
		works(place, false)
	}
	place := w.open(thread, w.harness.Member)
	w.say(place, "break down")
	works(place, true)
	close(breaks)
	works(place, false)
	w.awaitShown(place, 1)
	place = w.open(thread, w.harness.Member)
	w.say(place, "slow one to answer")
	works(place, true)
	close(g.open)
	w.want(w.awaitShown(place, 1), reply("slow one to answer"))
	works(place, false)
}
