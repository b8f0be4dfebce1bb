package platformtest

import (
	"net"
	"strings"
	"testing"
	"time"
)

func faultProperties() []property {
	return []property{
		{"Duplicate", "A message that the platform delivers twice is answered once.", answersOnce},
		{"AnswerDropped", "Where the platform shows an answer and does not say so, it is shown once more, marked as a repeat.", marksRepeat},
		{"Flood", "A flood limit delays its own chat alone, for as long as the platform asks, and loses nothing.", waitsAlone},
		{"FloodPasses", "An answer that met a flood limit is shown by itself when the time is over, unmarked.", waitsOut},
		{"ServerError", "An answer that met an error of the platform's own is sent again, marked as a repeat: nobody knows what became of the first.", triesAgain},
		{"Outage", "An outage loses nothing: what was cut off is sent once more when the service is back, marked, and everything else once, unmarked.", outlasts},
	}
}

func answersOnce(t testing.TB, w *world) {
	for _, kind := range []Kind{Direct, Shared, Thread} {
		place := w.open(kind, w.harness.Member)
		w.harness.Inject(place, Fault{Effect: DuplicateDelivery})
		w.say(place, "once")
		w.start()
		w.want(w.settled(place), reply("once"))
		w.stop()
	}
}

func marksRepeat(t testing.TB, w *world) {
	w.start()
	for _, kind := range []Kind{Direct, Thread} {
		place := w.open(kind, w.harness.Member)
		w.harness.Inject(place, Fault{Effect: AnswerDropped})
		w.say(place, "lost")
		got := w.settled(place)
		if len(got) != 2 || marked(got[0]) || !marked(got[1]) {
			t.Fatalf("there stands %q, want the answer and a marked repeat", texts(got))
		}
		for _, s := range got {
			w.contains(s, reply("lost"))
		}
	}
}

// long is a rate limit that no test waits for.
const long = time.Hour

func waitsAlone(t testing.TB, w *world) {
	w.start()
	flooded := w.open(Direct, w.harness.Member)
	w.harness.Inject(flooded, Fault{Effect: RateLimited, RetryAfter: long})
	w.say(flooded, "first")
	w.say(flooded, "second")
	refused := w.await("the refusal", func(v View) bool { return v.Sends == 1 })
	if len(refused.Messages) != 0 {
		t.Fatalf("there stands %q, want nothing", texts(refused.Messages))
	}
	w.want(w.settled(w.open(Thread, w.harness.Member)))
	// While this one is retried, one that ignored the limit would be, too. Once is not enough: both
	// could be tried in the same moment.
	failing := w.open(Shared, w.harness.Member)
	for range 2 {
		w.harness.Inject(failing, Fault{Effect: ServerError})
		w.want(w.settled(failing))
	}
	if v := w.look(); len(v.in(flooded)) != 0 || v.Sends != 6 {
		t.Errorf("%d sends and %q in the chat that is to wait", v.Sends, texts(v.in(flooded)))
	}
	// A new bot does not know of the limit, which has ended.
	w.stop()
	w.start()
	w.want(w.settled(flooded), reply("first"), reply("second"))
}

func waitsOut(t testing.TB, w *world) {
	w.retried(t, Fault{Effect: RateLimited, RetryAfter: time.Second}, false)
}

func triesAgain(t testing.TB, w *world) { w.retried(t, Fault{Effect: ServerError}, true) }

func outlasts(t testing.TB, w *world) {
	w.start()
	place, other := w.open(Direct, w.harness.Member), w.open(Thread, w.harness.Member)
	w.want(w.settled(place))
	w.harness.Inject(place, Fault{Effect: Outage})
	w.say(place, "cut off")
	w.await("the break", func(v View) bool { return v.Sends == 2 })
	w.say(other, "waits")
	w.onceAs(w.settled(place), reply("cut off"), true)
	w.want(w.settled(other), reply("waits"))
	if got := w.look().Sends; got != 6 {
		t.Errorf("%d sends, want one for each message and one more", got)
	}
}

// retried checks that a fault costs one more send, and that users see it if it is to be marked.
func (w *world) retried(t testing.TB, fault Fault, repeat bool) {
	t.Helper()
	w.start()
	place := w.open(Thread, w.harness.Member)
	w.harness.Inject(place, fault)
	w.say(place, "patience")
	w.onceAs(w.shown(place, 1), reply("patience"), repeat)
	if got := w.look().Sends; got != 2 {
		t.Errorf("%d sends, want the one that failed and one more", got)
	}
	w.onceAs(w.settled(place), reply("patience"), repeat)
}

// onceAs checks that a place shows one message, marked or not.
func (w *world) onceAs(got []Shown, want string, repeat bool) {
	w.t.Helper()
	if !repeat {
		w.want(got, want)
		return
	}
	if len(got) != 1 || !marked(got[0]) || !strings.HasPrefix(got[0].Text, want) {
		w.t.Errorf("there stands %q, want %q once, marked", texts(got), want)
	}
}

// Mute returns an address that accepts connections and sends nothing.
func Mute(t *testing.T) string {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln.Addr().String() // connections are never accepted
}
