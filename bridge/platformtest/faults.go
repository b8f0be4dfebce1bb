package platformtest

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
)

func faultProperties() []property {
	return []property{
		{"Duplicate", "A message that the platform delivers twice is answered once.", testDuplicate},
		{"AnswerDropped", "If the platform shows an answer but its response is lost, the answer is sent once more, marked as a repeat.", testAnswerDropped},
		{"Flood", "A rate limit delays only its own chat, for as long as the platform asks, and nothing is lost.", testFlood},
		{"FloodPasses", "An answer that hit a rate limit is sent automatically when the limit is over, without a mark.", testFloodPasses},
		{"ServerError", "An answer that hit a server error is sent again, marked as a repeat, because it is unknown whether the first arrived.", testServerError},
		{"Outage", "Nothing is lost in an outage: an interrupted answer is sent once more when the service is back, marked, and all others once, without a mark.", testOutage},
		{"OwnedElsewhere", "An answer that another process may send by now is not sent.", testOwnedElsewhere},
	}
}

func testDuplicate(t testing.TB, w *world) {
	for _, kind := range []Kind{Direct, Shared, thread} {
		place := w.open(kind, w.harness.Member)
		w.harness.Inject(place, Fault{Effect: DuplicateDelivery})
		w.say(place, "once")
		w.start()
		w.want(w.awaitSettled(place), reply("once"))
		w.stop()
	}
}

func testAnswerDropped(t testing.TB, w *world) {
	w.start()
	for _, kind := range []Kind{Direct, thread} {
		place := w.open(kind, w.harness.Member)
		w.harness.Inject(place, Fault{Effect: AnswerDropped})
		w.say(place, "lost")
		got := w.awaitSettled(place)
		if len(got) != 2 || isMarked(got[0]) || !isMarked(got[1]) {
			t.Fatalf("shown: %q, want the answer and a marked repeat", texts(got))
		}
		for _, s := range got {
			w.wantContains(s, reply("lost"))
		}
	}
}

// longLimit is a rate limit that no test waits for.
const longLimit = time.Hour

func testFlood(t testing.TB, w *world) {
	w.start()
	flooded := w.open(Direct, w.harness.Member)
	w.harness.Inject(flooded, Fault{Effect: RateLimited, RetryAfter: longLimit})
	w.say(flooded, "first")
	w.say(flooded, "second")
	refused := w.await("the refusal", func(v View) bool { return v.Sends == 1 })
	if len(refused.Messages) != 0 {
		t.Fatalf("shown: %q, want nothing", texts(refused.Messages))
	}
	w.want(w.awaitSettled(w.open(thread, w.harness.Member)))
	// While this answer is retried, one that ignored the limit would be retried as well. Once is not
	// enough, because both could be tried at the same moment.
	failing := w.open(Shared, w.harness.Member)
	for range 2 {
		w.harness.Inject(failing, Fault{Effect: ServerError})
		w.want(w.awaitSettled(failing))
	}
	if v := w.view(); len(v.inPlace(flooded)) != 0 || v.Sends != 6 {
		t.Errorf("%d sends and %q in the chat that is to wait", v.Sends, texts(v.inPlace(flooded)))
	}
	// A new bot does not know of the limit, and the service refuses no more.
	w.stop()
	w.start()
	w.want(w.awaitSettled(flooded), reply("first"), reply("second"))
}

func testFloodPasses(t testing.TB, w *world) {
	w.checkRetry(t, Fault{Effect: RateLimited, RetryAfter: time.Second}, false)
}

func testServerError(t testing.TB, w *world) { w.checkRetry(t, Fault{Effect: ServerError}, true) }

func testOutage(t testing.TB, w *world) {
	w.start()
	place, other := w.open(Direct, w.harness.Member), w.open(thread, w.harness.Member)
	w.want(w.awaitSettled(place))
	w.harness.Inject(place, Fault{Effect: Outage})
	w.say(place, "cut off")
	w.await("the break", func(v View) bool { return v.Sends == 2 })
	w.say(other, "waits")
	w.wantOnce(w.awaitSettled(place), reply("cut off"), true)
	w.want(w.awaitSettled(other), reply("waits"))
	if got := w.view().Sends; got != 6 {
		t.Errorf("%d sends, want one for each message and one more", got)
	}
}

func testOwnedElsewhere(t testing.TB, w *world) {
	platform := w.harness.Adapter()
	w.run(platform, newRecordingInbox())
	place := w.open(Direct, w.harness.Member)
	chat, err := chats.ParseChat(string(place))
	if err != nil {
		t.Fatal(err)
	}
	send := func(ctx context.Context) error {
		_, err := platform.Send(ctx, chats.Address{Chat: chat}, platform.Render("an answer")[0])
		return err
	}
	errElsewhere := errors.New("owned elsewhere")
	err = send(chats.WithPrecondition(t.Context(), func() error { return errElsewhere }))
	if !errors.Is(err, errElsewhere) {
		t.Errorf("Send: %v, want the error of the precondition", err)
	}
	if shown := w.view().inPlace(place); len(shown) != 0 {
		t.Errorf("shown: %q, want nothing", texts(shown))
	}
	if err := send(chats.WithPrecondition(t.Context(), func() error { return nil })); err != nil {
		t.Errorf("Send with a precondition that holds: %v", err)
	}
	if shown := w.view().inPlace(place); len(shown) != 1 {
		t.Errorf("shown: %q, want one answer", texts(shown))
	}
}

// checkRetry checks that a fault costs exactly one more send, and that the answer is marked as a possible
// repeat if marked is set.
func (w *world) checkRetry(t testing.TB, fault Fault, marked bool) {
	t.Helper()
	w.start()
	place := w.open(thread, w.harness.Member)
	w.harness.Inject(place, fault)
	w.say(place, "patience")
	w.wantOnce(w.awaitShown(place, 1), reply("patience"), marked)
	if got := w.view().Sends; got != 2 {
		t.Errorf("%d sends, want the one that failed and one more", got)
	}
	w.wantOnce(w.awaitSettled(place), reply("patience"), marked)
}

// wantOnce checks that a place shows one message, marked as a possible repeat if marked is set.
func (w *world) wantOnce(got []Shown, want string, marked bool) {
	w.t.Helper()
	if !marked {
		w.want(got, want)
		return
	}
	if len(got) != 1 || !isMarked(got[0]) || !strings.HasPrefix(got[0].Text, want) {
		w.t.Errorf("shown: %q, want %q once, marked", texts(got), want)
	}
}

// MuteAddress returns the address of a listener that never answers.
func MuteAddress(t *testing.T) string {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln.Addr().String() // the system completes connections, and no program accepts them
}
