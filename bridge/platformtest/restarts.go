package platformtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

func restartProperties() []property {
	return []property{
		{"Restart", "Messages that were accepted before a restart are answered after it, once, in order and in their place; messages that were answered are not answered again.", testRestart},
		{"TakenOver", "A bot that still works after another one has taken over its jobs adds nothing: each message is answered once, in order, in its place.", testTakenOver},
		{"RestartBeforeConfirmation", "A message that was stored but not confirmed when the bot stopped is answered once.", testRestartBeforeConfirmation},
		{"RestartWhileSending", "An answer that was being sent when the bot stopped is sent once more, marked.", testRestartWhileSending},
		{"InboxFails", "A message that cannot be stored is not confirmed: it is redelivered until it is stored, and is answered once.", testInboxFails},
		{"RecordBeforeArrival", "Each send is recorded before the message arrives, exactly once.", testRecordBeforeArrival},
		{"NoRecordNoArrival", "An answer whose send cannot be recorded does not arrive; it is sent as soon as it can be recorded, without a mark.", testNoRecordNoArrival},
	}
}

func testRestart(t testing.TB, w *world) {
	g := newGate()
	w.respond = g.think
	w.start()
	places := startMidway(t, w, g)
	w.stop()
	close(g.open)
	w.start()
	w.wantAll(places)
}

// startMidway prepares three messages in each place: the first is answered, the second waits for the
// model, and the third waits behind it.
func startMidway(t testing.TB, w *world, g *gate) []Place {
	t.Helper()
	places := w.openAll()
	for _, place := range places {
		w.say(place, "done")
		w.want(w.awaitSettled(place), reply("done"))
	}
	w.awaitNoJobs()
	for _, place := range places {
		w.say(place, "slow one")
		w.say(place, "and another")
	}
	for range places {
		waitFor(t, "the slow ones to reach the model", g.reached)
	}
	return places
}

// awaitNoJobs waits until no job is open. An answer's receipt is stored while the next message is being
// answered, and a bot that took over before that would send the answer again, marked.
func (w *world) awaitNoJobs() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	changes := w.store.Watch(ctx, queue.OpenPrefix)
	open := func() (n int) {
		for _, err := range w.store.List(ctx, storage.Range{Prefix: queue.OpenPrefix}) {
			if err != nil {
				w.t.Fatal(err)
			}
			n++
		}
		return n
	}
	if open() == 0 {
		return
	}
	for _, err := range changes {
		if err != nil {
			w.t.Fatalf("waiting for jobs to end: %v", err)
		}
		if open() == 0 {
			return
		}
	}
}

// wantAll checks that each place shows the answers to the messages of startMidway.
func (w *world) wantAll(places []Place) {
	w.t.Helper()
	for _, place := range places {
		w.want(w.awaitSettled(place), reply("done"), reply("slow one"), reply("and another"))
	}
}

func testTakenOver(t testing.TB, w *world) {
	g := newGate()
	w.respond = g.think
	w.cfg.Limits.DrainTimeout = 20 * time.Second
	w.start()
	places := startMidway(t, w, g)
	former, ended := w.stop, make(chan struct{})
	go func() {
		defer close(ended)
		former()
	}()
	waitFor(t, "the former bot to receive no more", w.received)
	w.start()
	for range places {
		waitFor(t, "the slow ones to reach the model again", g.reached)
	}
	close(g.open)
	waitFor(t, "the former bot to end", ended)
	w.wantAll(places)
}

func testRestartBeforeConfirmation(t testing.TB, w *world) {
	written := make(chan struct{})
	once := sync.OnceFunc(func() { close(written) })
	w.store.onJob(func(ctx context.Context, j jobRecord, write func() error) error {
		err := write()
		if err == nil && j.Work.Parts == nil {
			once()
			<-ctx.Done()
			err = ctx.Err()
		}
		return err
	})
	w.start()
	place := w.open(Shared, w.harness.Member)
	w.say(place, "kept")
	waitFor(t, "the message to be kept", written)
	w.stop()
	w.store.onJob(nil)
	w.start()
	w.want(w.awaitSettled(place), reply("kept"))
}

func testRestartWhileSending(t testing.TB, w *world) {
	sending, stopping := make(chan struct{}), make(chan struct{})
	once, release := sync.OnceFunc(func() { close(sending) }), sync.OnceFunc(func() { close(stopping) })
	defer release()
	w.store.onJob(func(_ context.Context, j jobRecord, write func() error) error {
		err := write()
		if err == nil && isSending(j) {
			once()
			<-stopping
			err = errStopping
		}
		return err
	})
	w.start()
	place := w.open(thread, w.harness.Member)
	w.say(place, "cut off")
	waitFor(t, "the record of the sending", sending)
	// Without release, the write would only end after [queue.WriteTimeout].
	stop, ended := w.stop, make(chan struct{})
	go func() {
		defer close(ended)
		stop()
	}()
	waitFor(t, "the bot to receive no more", w.received)
	release()
	waitFor(t, "the bot to end", ended)
	w.store.onJob(nil)
	if got := w.view().Messages; len(got) != 0 {
		t.Fatalf("the service shows %q for a request that was never completed", texts(got))
	}
	w.start()
	got := w.awaitSettled(place)
	if len(got) != 1 || !isMarked(got[0]) {
		t.Fatalf("shown: %q, want one answer that is marked", texts(got))
	}
	w.wantContains(got[0], reply("cut off"))
}

var (
	errFull     = errors.New("disk full")
	errStopping = errors.New("the bot is being stopped")
)

func testInboxFails(_ testing.TB, w *world) {
	var once sync.Once
	w.store.onJob(func(_ context.Context, j jobRecord, write func() error) (err error) {
		if j.Work.Parts == nil && j.Message.Text == "keep this" {
			once.Do(func() { err = errFull })
		}
		if err != nil {
			return err
		}
		return write()
	})
	w.start()
	place := w.open(Direct, w.harness.Member)
	w.say(place, "keep this")
	w.want(w.awaitShown(place, 1), reply("keep this"))
	w.want(w.awaitSettled(place), reply("keep this"))
}

func testRecordBeforeArrival(t testing.TB, w *world) {
	text := strings.Repeat("remarkable ", 800)
	w.respond = func(context.Context, []string) string { return text }
	var mu sync.Mutex
	var arrived []int // number of messages at each record
	w.store.onJob(func(_ context.Context, j jobRecord, write func() error) error {
		if isSending(j) {
			mu.Lock()
			arrived = append(arrived, w.countMessages())
			mu.Unlock()
		}
		return write()
	})
	w.start()
	place := w.open(Direct, w.harness.Member)
	w.say(place, "go on")
	w.await("the whole answer", func(v View) bool { return strings.Count(joinTexts(v.inPlace(place)), "remarkable") == 800 })
	w.stop()
	shown := w.view().Messages
	if len(arrived) != len(shown) || len(shown) < 2 {
		t.Errorf("%d messages, %d records of sends", len(shown), len(arrived))
	}
	for i, n := range arrived {
		if n != i {
			t.Errorf("at the record of send %d there were %d messages", i, n)
		}
	}
}

// countMessages returns the number of messages. Unlike view, it may be called by any goroutine, because
// it never ends the test.
func (w *world) countMessages() (n int) {
	if err := w.harness.Await(w.t.Context(), func(v View) bool { n = len(v.Messages); return true }); err != nil {
		w.t.Error(err)
	}
	return n
}

func testNoRecordNoArrival(_ testing.TB, w *world) {
	var once sync.Once
	w.store.onJob(func(_ context.Context, j jobRecord, write func() error) (err error) {
		if isSending(j) {
			once.Do(func() { err = errFull })
		}
		if err != nil {
			return err
		}
		return write()
	})
	w.start()
	place := w.open(thread, w.harness.Member)
	w.say(place, "record me")
	w.want(w.awaitSettled(place), reply("record me"))
}
