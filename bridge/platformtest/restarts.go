package platformtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

func restartProperties() []property {
	return []property{
		{"Restart", "What was accepted before the bot is started anew is answered after it, once, in order, in its place; what was answered is not answered again.", goesOn},
		{"TakenOver", "A bot that still works when another one has taken its jobs over adds nothing: each message is answered once, in order, in its place.", isTakenOver},
		{"RestartBeforeConfirmation", "A message that was kept but not confirmed when the bot stopped is answered once.", confirmsLate},
		{"RestartWhileSending", "An answer that was being sent when the bot stopped is sent once more and marked.", resendsMarked},
		{"InboxFails", "A message that cannot be kept is not confirmed: it comes again until it is kept, and is answered once.", keepsTrying},
		{"RecordBeforeArrival", "Each sending is on record before the message arrives, and once.", recordsFirst},
		{"NoRecordNoArrival", "An answer whose sending cannot be recorded does not arrive; it is sent when it can, unmarked.", waitsForRecord},
	}
}

func goesOn(t testing.TB, w *world) {
	g := newGate()
	w.think = g.think
	w.start()
	places := inTheMiddle(t, w, g)
	w.stop()
	close(g.open)
	w.start()
	w.wantAll(places)
}

// inTheMiddle has, in each place, one message answered, a second one waiting for the model, and a third
// behind it.
func inTheMiddle(t testing.TB, w *world, g *gate) []Place {
	t.Helper()
	places := w.everywhere()
	for _, place := range places {
		w.say(place, "done")
		w.want(w.settled(place), reply("done"))
	}
	w.rest()
	for _, place := range places {
		w.say(place, "slow one")
		w.say(place, "and another")
	}
	for range places {
		until(t, "the slow ones to reach the model", g.reached)
	}
	return places
}

// rest waits until no job is open: an answer's receipt is stored while the next message is being
// answered, and a bot that takes over earlier sends it again, marked.
func (w *world) rest() {
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

// wantAll checks that each place shows the answers to the messages of inTheMiddle.
func (w *world) wantAll(places []Place) {
	w.t.Helper()
	for _, place := range places {
		w.want(w.settled(place), reply("done"), reply("slow one"), reply("and another"))
	}
}

func isTakenOver(t testing.TB, w *world) {
	g := newGate()
	w.think = g.think
	w.cfg.Limits.DrainTimeout = patience
	w.start()
	places := inTheMiddle(t, w, g)
	former, ended := w.stop, make(chan struct{})
	go func() {
		defer close(ended)
		former()
	}()
	until(t, "the former bot to receive no more", w.received)
	w.start()
	for range places {
		until(t, "the slow ones to reach the model again", g.reached)
	}
	close(g.open)
	until(t, "the former bot to end", ended)
	w.wantAll(places)
}

func confirmsLate(t testing.TB, w *world) {
	written := make(chan struct{})
	once := sync.OnceFunc(func() { close(written) })
	w.store.onJob(func(ctx context.Context, j record, write func() error) error {
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
	until(t, "the message to be kept", written)
	w.stop()
	w.store.onJob(nil)
	w.start()
	w.want(w.settled(place), reply("kept"))
}

func resendsMarked(t testing.TB, w *world) {
	sending, stopping := make(chan struct{}), make(chan struct{})
	once, release := sync.OnceFunc(func() { close(sending) }), sync.OnceFunc(func() { close(stopping) })
	defer release()
	w.store.onJob(func(_ context.Context, j record, write func() error) error {
		err := write()
		if err == nil && isSending(j) {
			once()
			<-stopping
			err = errStopping
		}
		return err
	})
	w.start()
	place := w.open(Thread, w.harness.Member)
	w.say(place, "cut off")
	until(t, "the record of the sending", sending)
	// By itself the write would only end after [queue.WriteTimeout].
	stop, ended := w.stop, make(chan struct{})
	go func() {
		defer close(ended)
		stop()
	}()
	until(t, "the bot to receive no more", w.received)
	release()
	until(t, "the bot to end", ended)
	w.store.onJob(nil)
	if got := w.look().Messages; len(got) != 0 {
		t.Fatalf("there stands %q of a request that was never completed", texts(got))
	}
	w.start()
	got := w.settled(place)
	if len(got) != 1 || !marked(got[0]) {
		t.Fatalf("there stands %q, want one answer that is marked", texts(got))
	}
	w.contains(got[0], reply("cut off"))
}

var (
	errFull     = errors.New("disk full")
	errStopping = errors.New("the bot is being stopped")
)

func keepsTrying(_ testing.TB, w *world) {
	var once sync.Once
	w.store.onJob(func(_ context.Context, j record, write func() error) (err error) {
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
	w.want(w.shown(place, 1), reply("keep this"))
	w.want(w.settled(place), reply("keep this"))
}

func recordsFirst(t testing.TB, w *world) {
	text := strings.Repeat("remarkable ", 800)
	w.think = func(context.Context, []string) string { return text }
	var mu sync.Mutex
	var arrived []int // number of messages at each record
	w.store.onJob(func(_ context.Context, j record, write func() error) error {
		if isSending(j) {
			mu.Lock()
			arrived = append(arrived, w.count())
			mu.Unlock()
		}
		return write()
	})
	w.start()
	place := w.open(Direct, w.harness.Member)
	w.say(place, "go on")
	w.await("the whole answer", func(v View) bool { return strings.Count(joined(v.in(place)), "remarkable") == 800 })
	w.stop()
	shown := w.look().Messages
	if len(arrived) != len(shown) || len(shown) < 2 {
		t.Errorf("%d messages, %d records of sendings", len(shown), len(arrived))
	}
	for i, n := range arrived {
		if n != i {
			t.Errorf("at the record of sending %d there stood %d messages", i, n)
		}
	}
}

// count is for goroutines that must not end the test.
func (w *world) count() (n int) {
	if err := w.harness.Await(w.t.Context(), func(v View) bool { n = len(v.Messages); return true }); err != nil {
		w.t.Error(err)
	}
	return n
}

func waitsForRecord(_ testing.TB, w *world) {
	var once sync.Once
	w.store.onJob(func(_ context.Context, j record, write func() error) (err error) {
		if isSending(j) {
			once.Do(func() { err = errFull })
		}
		if err != nil {
			return err
		}
		return write()
	})
	w.start()
	place := w.open(Thread, w.harness.Member)
	w.say(place, "record me")
	w.want(w.settled(place), reply("record me"))
}
