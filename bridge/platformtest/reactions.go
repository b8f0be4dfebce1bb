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
// [chats.Acknowledger] must be one; the properties of reactions are skipped for others. Its views have
// [View.Signed].
type Reactor interface {
	// React makes a user react to a message as good or bad, or undo that.
	React(in Place, by, message string, good, back bool)
}

func reactionProperties() []property {
	return []property{
		{"Signed", "A message that waits for its turn bears a sign until it is answered; one that does not wait bears none.", signsWhatWaits},
		{"SignedAcrossARestart", "The sign that a bot has put on a message before it was stopped is taken away when the message is answered.", takesSignsAway},
		{"Judged", "What people who may talk to the bot think of an answer is kept and told, until they take it back; feedback of others is not.", keepsFeedback},
	}
}

func (w *world) reactor() Reactor {
	w.t.Helper()
	r, can := w.harness.Service.(Reactor)
	if !can {
		w.t.Skip("nobody can react on the platform")
	}
	w.cfg.Turns.Acknowledge = true
	return r
}

// signed makes a message wait in each place, and returns a function that releases them; all have a
// reaction by then.
func signed(t testing.TB, w *world) (places []Place, answer func()) {
	t.Helper()
	w.reactor()
	g := newGate()
	w.think = g.think
	w.start()
	places = w.everywhere()
	var ids []string
	for _, place := range places {
		w.say(place, "slow one")
	}
	for range places {
		until(t, "the slow ones to reach the model", g.reached)
	}
	for _, place := range places {
		ids = append(ids, w.harness.Say(place, w.harness.Member, "and another"))
	}
	slices.Sort(ids)
	w.await("the signs", func(v View) bool {
		slices.Sort(v.Signed)
		return slices.Equal(v.Signed, ids)
	})
	return places, func() { close(g.open) }
}

// answered checks that the messages of signed are answered, and no reaction is left.
func (w *world) answered(places []Place) {
	w.t.Helper()
	for _, place := range places {
		w.want(w.shown(place, 2), reply("slow one"), reply("and another"))
	}
	w.await("the signs to be gone", func(v View) bool { return len(v.Signed) == 0 })
}

func signsWhatWaits(t testing.TB, w *world) {
	places, answer := signed(t, w)
	answer()
	w.answered(places)
}

func takesSignsAway(t testing.TB, w *world) {
	places, answer := signed(t, w)
	w.stop()
	answer()
	w.start()
	w.answered(places)
}

func keepsFeedback(_ testing.TB, w *world) {
	r := w.reactor()
	w.start()
	for _, kind := range []Kind{Direct, Shared, Thread} {
		place := w.open(kind, w.harness.Member)
		w.say(place, "what do you think?")
		id := w.shown(place, 1)[0].ID
		w.judged(place, id, 0, 0)
		if kind != Direct {
			r.React(place, w.harness.Stranger, id, true, false)
			r.React(place, w.harness.Admin, id, true, false)
			w.judged(place, id, 1, 0)
		}
		r.React(place, w.harness.Member, id, true, false)
		if kind == Direct {
			w.judged(place, id, 1, 0)
			r.React(place, w.harness.Member, id, true, true)
			w.judged(place, id, 0, 0)
			continue
		}
		r.React(place, w.harness.Member, id, false, false) // the last one counts
		w.judged(place, id, 1, 1)
		w.say(place, "/why")
		w.confided(place, 1, "👍 1, 👎 1")
	}
}

// judged waits until the receipt of an answer has this many good and bad ratings.
func (w *world) judged(place Place, id string, good, bad int) {
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
		g, b := receipts.FeedbackCounts(r.Turn.Feedback)
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
