package platformtest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// Reactor is a [Service] in which users react to messages. A service whose adapter is a
// [chats.Acknowledger] must be one; for other services the properties of reactions are skipped. Its
// views have [View.Acknowledged].
type Reactor interface {
	// React makes a user rate a message with a reaction, good or bad, or take that back.
	React(in Place, by, message string, good, back bool)
}

func reactionProperties() []property {
	return []property{
		{"Signed", "A message that waits for its turn has a reaction until it is answered; one that does not wait has none.", testSigned},
		{"SignedAcrossARestart", "A reaction that the bot added before it was stopped is removed when the message is answered.", testSignedAcrossARestart},
		{"Judged", "Ratings of an answer by users who may talk to the bot are stored and reported until they are withdrawn; other users' ratings are not.", testJudged},
	}
}

func (w *world) reactor() Reactor {
	w.t.Helper()
	r, can := w.harness.Service.(Reactor)
	if !can {
		w.t.Skip("users cannot react on the platform")
	}
	w.cfg.Turns.Acknowledge = true
	return r
}

// awaitAcknowledged makes a message wait in each place, and waits until all of them have a reaction. It
// returns a function that releases them.
func awaitAcknowledged(t testing.TB, w *world) (places []Place, answer func()) {
	t.Helper()
	w.reactor()
	g := newGate()
	w.respond = g.think
	w.start()
	places = w.openAll()
	var ids []string
	for _, place := range places {
		w.say(place, "slow one")
	}
	for range places {
		waitFor(t, "the slow ones to reach the model", g.reached)
	}
	for _, place := range places {
		ids = append(ids, w.harness.Say(place, w.harness.Member, "and another"))
	}
	slices.Sort(ids)
	w.await("the reactions", func(v View) bool {
		slices.Sort(v.Acknowledged)
		return slices.Equal(v.Acknowledged, ids)
	})
	return places, func() { close(g.open) }
}

// checkAnswered checks that the messages of awaitAcknowledged are answered, and that no reaction is
// left.
func (w *world) checkAnswered(places []Place) {
	w.t.Helper()
	for _, place := range places {
		w.want(w.awaitShown(place, 2), reply("slow one"), reply("and another"))
	}
	w.await("the reactions to be removed", func(v View) bool { return len(v.Acknowledged) == 0 })
}

func testSigned(t testing.TB, w *world) {
	places, answer := awaitAcknowledged(t, w)
	answer()
	w.checkAnswered(places)
}

func testSignedAcrossARestart(t testing.TB, w *world) {
	places, answer := awaitAcknowledged(t, w)
	w.stop()
	answer()
	w.start()
	w.checkAnswered(places)
}

func testJudged(_ testing.TB, w *world) {
	r := w.reactor()
	w.start()
	for _, kind := range []Kind{Direct, Shared, thread} {
		place := w.open(kind, w.harness.Member)
		w.say(place, "say what you think")
		id := w.awaitShown(place, 1)[0].ID
		w.awaitRatings(place, id, 0, 0)
		if kind != Direct {
			r.React(place, w.harness.Stranger, id, true, false)
			r.React(place, w.harness.Admin, id, true, false)
			w.awaitRatings(place, id, 1, 0)
		}
		r.React(place, w.harness.Member, id, true, false)
		if kind == Direct {
			w.awaitRatings(place, id, 1, 0)
			r.React(place, w.harness.Member, id, true, true)
			w.awaitRatings(place, id, 0, 0)
			continue
		}
		r.React(place, w.harness.Member, id, false, false) // the last one counts
		w.awaitRatings(place, id, 1, 1)
		w.say(place, "/why")
		w.awaitConfided(place, 1, "👍 1, 👎 1")
	}
}

// awaitRatings waits until the receipt of an answer has this many good and bad ratings.
func (w *world) awaitRatings(place Place, id string, good, bad int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	changes := w.store.Watch(ctx, receipts.Prefix)
	chat, err := chats.ParseChat(string(place))
	if err != nil {
		w.t.Fatal(err)
	}
	fits := func(entry storage.Entry) bool {
		var r receipts.Receipt
		if json.Unmarshal(entry.Value, &r) != nil || r.Message.Chat.ID != chat.ID || !r.HasSent(id) {
			return false
		}
		g, b := receipts.CountFeedback(r.Turn.Feedback)
		return g == good && b == bad
	}
	for entry, err := range w.store.List(ctx, storage.Range{Prefix: receipts.Prefix}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if fits(entry) {
			return
		}
	}
	for change, err := range changes {
		if err != nil {
			break
		}
		if fits(change.Entry) {
			return
		}
	}
	w.t.Fatalf("waited in vain for %d good and %d bad ratings of %s", good, bad, id)
}
