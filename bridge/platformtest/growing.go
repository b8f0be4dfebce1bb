package platformtest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
)

// Remover is a [Service] in which users can delete messages of the bot. A service whose adapter is a
// [chats.Previewer] must be one.
type Remover interface {
	// Remove makes a user who may do so delete a message of the bot.
	Remove(in Place, message string)
}

// Stopper is a [Service] with a native button to stop an answer that grows.
type Stopper interface {
	// Stop makes a user press it under a message of the bot.
	Stop(in Place, by, message string)
}

func growingProperties() []property {
	return []property{
		{"Grows", "An answer that takes a while is shown while it is made, in one message that ends as the answer would be without; what is delivered twice is answered once.", grows},
		{"GrowsInAFlood", "Flood control delays an answer that grows and costs nothing of it.", growsInFloods},
		{"GrowsAndIsLost", "Where the service does not tell that the beginning arrived, the whole answer follows, marked; where it does not tell of a change, nothing is doubled.", growsUnheard},
		{"GrowsSlowly", "On a slow service, and where changes fail, the answer is whole and stands there once.", growsSlowly},
		{"GrowsNoMore", "An answer whose beginning was deleted, or cannot be changed any more, is sent whole.", growsAnew},
		{"GrowsUntilStopped", "The button under an answer that grows stops it: what was shown stays and says so, and the button is gone.", growsUntilStopped},
		{"StreamsUntilStopped", "The service's own button to stop does what the bot's does, and nothing shows that the bot is at work.", streamsUntilStopped},
		{"StreamsAcrossAKill", "An answer that streams when the bot is killed ends whole in its message; where that cannot be changed any more, it follows, marked.", streamsOn},
		{"SaysWhatItDoes", "While tools run, a line says what they do, as plain text; it is gone in the end.", saysWhatItDoes},
		{"GrowsAcrossARestart", "An answer that grows when the bot is started anew goes on in its message.", growsOn},
	}
}

const (
	firstHalf  = "**The first** half, "
	secondHalf = "the *second* half."
)

// teller tells a story in two halves to users who ask for one, the second when it is released; it
// answers other questions at once.
type teller struct {
	goOn chan struct{}
}

func (g *teller) speak(ctx context.Context, said []string, show func(string)) string {
	if last := said[len(said)-1]; !strings.HasPrefix(last, "tell") {
		return echo(ctx, said)
	}
	show(firstHalf)
	select {
	case <-g.goOn:
	case <-ctx.Done():
	}
	show(secondHalf)
	return firstHalf + secondHalf
}

// telling starts a bot whose answers grow, or skips the test.
func (w *world) telling() *teller {
	w.t.Helper()
	if _, ok := w.harness.Adapter().(chats.Previewer); !ok {
		w.t.Skip("the platform shows no answers that grow")
	}
	g := &teller{goOn: make(chan struct{}, 64)}
	w.speak = g.speak
	w.cfg.Turns.RedactPartial = func(text string) string { return text[:strings.LastIndexByte(text, ' ')+1] }
	w.start()
	return g
}

// half waits until a place shows the first half of a story, and returns its message.
func (w *world) half(in Place) Shown {
	w.t.Helper()
	got := w.await("the first half", func(v View) bool {
		all := v.in(in)
		return len(all) > 0 && (len(all[len(all)-1].Buttons) > 0 || all[len(all)-1].Streams) && strings.Contains(all[len(all)-1].Text, "half,")
	}).in(in)
	return got[len(got)-1]
}

// story returns a story that did not grow.
func (w *world) story(g *teller) Shown {
	w.t.Helper()
	g.goOn <- struct{}{}
	place := w.open(Direct, w.harness.Member)
	before := len(w.look().in(place))
	w.say(place, "tell at once")
	return w.shown(place, before+1)[before]
}

// told waits until a place shows only the story, and before it the named pieces.
func (w *world) told(in Place, story Shown, pieces int, repeat bool) {
	w.t.Helper()
	whole := func(s Shown) bool {
		same := s.Text == story.Text
		if repeat {
			same = strings.HasPrefix(s.Text, story.Text) && marked(s)
		}
		return same && len(s.Buttons) == 0 && !s.Streams
	}
	got := w.await("the whole answer", func(v View) bool {
		all := v.in(in)
		return len(all) > pieces && whole(all[pieces])
	}).in(in)
	if len(got) != pieces+1 {
		w.t.Errorf("there stands %q, want %d pieces and %q", texts(got), pieces, story.Text)
	}
}

func grows(t testing.TB, w *world) {
	g := w.telling()
	story := w.story(g)
	if strings.Contains(story.Text, "\n") {
		t.Fatalf("the story is %q", story.Text)
	}
	for i, place := range w.everywhere() {
		before := len(w.look().in(place))
		if i > 0 {
			w.harness.Inject(place, Fault{Effect: DuplicateDelivery})
		}
		id := w.harness.Say(place, w.harness.Member, "tell")
		half := w.half(place)
		stops := half.Streams || len(half.Buttons) == 1 && len(half.Buttons[0]) == 1
		if !stops || half.Text == story.Text || half.ReplyTo != "" && half.ReplyTo != id {
			t.Errorf("it grows as %+v", half)
		}
		g.goOn <- struct{}{}
		w.told(place, story, before, false)
		if now := w.look().in(place)[before]; now.ID != half.ID || now.ReplyTo != half.ReplyTo {
			t.Errorf("the answer is %+v, which grew as %+v", now, half)
		}
	}
}

func growsInFloods(_ testing.TB, w *world) {
	g := w.telling()
	story := w.story(g)
	begins, changes := w.open(Shared, w.harness.Member), w.open(Thread, w.harness.Member)
	w.harness.Inject(begins, Fault{Effect: RateLimited, RetryAfter: time.Second})
	w.say(begins, "tell")
	w.say(changes, "tell")
	w.await("the refusal", func(v View) bool { return v.Sends == 3 })
	w.half(changes)
	w.harness.Inject(changes, Fault{Effect: RateLimited, RetryAfter: time.Second, Edit: true})
	g.goOn <- struct{}{}
	g.goOn <- struct{}{}
	w.told(changes, story, 0, false)
	w.told(begins, story, 0, false)
}

func growsUnheard(_ testing.TB, w *world) {
	g := w.telling()
	story := w.story(g)
	begins, changes := w.open(Shared, w.harness.Member), w.open(Thread, w.harness.Member)
	w.harness.Inject(begins, Fault{Effect: AnswerDropped})
	w.say(begins, "tell")
	w.say(changes, "tell")
	w.half(begins)
	w.half(changes)
	w.harness.Inject(changes, Fault{Effect: AnswerDropped, Edit: true})
	g.goOn <- struct{}{}
	g.goOn <- struct{}{}
	w.told(changes, story, 0, false)
	w.told(begins, story, 1, true)
}

func growsSlowly(_ testing.TB, w *world) {
	g := w.telling()
	story := w.story(g)
	begins, changes := w.open(Shared, w.harness.Member), w.open(Thread, w.harness.Member)
	w.harness.Inject(begins, Fault{Effect: Slow, RetryAfter: time.Second})
	w.say(begins, "tell")
	w.say(changes, "tell")
	w.half(changes)
	w.harness.Inject(changes, Fault{Effect: ServerError, Edit: true})
	w.await("the slow one to be under way", func(v View) bool { return v.Sends == 3 })
	g.goOn <- struct{}{}
	g.goOn <- struct{}{}
	w.told(changes, story, 0, false)
	w.told(begins, story, 0, false)
}

func growsAnew(t testing.TB, w *world) {
	g := w.telling()
	remover, ok := w.harness.Service.(Remover)
	if !ok {
		t.Skip("nobody deletes messages of the bot")
	}
	story := w.story(g)
	deleted, refused := w.open(Shared, w.harness.Member), w.open(Thread, w.harness.Member)
	w.say(deleted, "tell")
	w.say(refused, "tell")
	remover.Remove(deleted, w.half(deleted).ID)
	w.half(refused)
	w.harness.Inject(refused, Fault{Effect: Refused, Edit: true})
	g.goOn <- struct{}{}
	g.goOn <- struct{}{}
	w.told(deleted, story, 0, false)
	w.await("the answer to be whole", func(v View) bool {
		all := v.in(refused)
		last := all[len(all)-1]
		return len(all) <= 2 && last.Text == story.Text && len(last.Buttons) == 0
	})
}

func growsUntilStopped(t testing.TB, w *world) {
	w.telling()
	presser, ok := w.harness.Service.(Presser)
	if !ok {
		t.Skip("the platform shows no buttons")
	}
	for _, kind := range []Kind{Shared, Thread} {
		place := w.open(kind, w.harness.Member)
		w.say(place, "tell")
		half := w.half(place)
		presser.Press(place, w.harness.Admin, half.ID, half.Buttons[0][0].Data)
		stopped := func(s Shown) bool {
			return strings.Contains(s.Text, "half,") && strings.Contains(s.Text, "Stopped") && len(s.Buttons) == 0
		}
		w.await("the end", func(v View) bool { all := v.in(place); return len(all) == 1 && stopped(all[0]) })
		w.want(w.settled(place)[1:])
	}
}

func saysWhatItDoes(t testing.TB, w *world) {
	g := w.telling()
	story := w.story(g)
	const page = "reading a_b_c.pdf <b>&amp; [x](y), page 2"
	goOn := make(chan struct{})
	w.act = func(ctx context.Context, observe func(agent.Event)) {
		call := agent.ToolEvent{Call: "1", Doing: "reading a_b_c.pdf <b>&amp; [x](y)"}
		observe(agent.Event{Began: &call})
		call.Step = "page 2"
		observe(agent.Event{Step: &call})
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		observe(agent.Event{Ended: &call})
	}
	place := w.open(Shared, w.harness.Member)
	w.say(place, "tell")
	w.await("what it does", func(v View) bool {
		all := v.in(place)
		return len(all) == 1 && len(all[0].Buttons) == 1 && strings.Contains(all[0].Text, page)
	})
	goOn <- struct{}{}
	if half := w.half(place); strings.Contains(half.Text, "reading") {
		t.Errorf("it says what it did: %q", half.Text)
	}
	g.goOn <- struct{}{}
	w.told(place, story, 0, false)
}

func growsOn(t testing.TB, w *world) {
	g := w.telling()
	story := w.story(g)
	for _, kind := range []Kind{Shared, Thread} {
		known, asked := make(chan struct{}), "tell in a "+string(kind)
		once := sync.OnceFunc(func() { close(known) })
		w.store.onJob(func(_ context.Context, j record, write func() error) error {
			err := write()
			if j.Work.Preview != nil && j.Work.Preview.ID != "" && strings.HasSuffix(j.Message.Text, asked) {
				once()
			}
			return err
		})
		place := w.open(kind, w.harness.Member)
		w.say(place, asked)
		half := w.half(place)
		until(t, "the record of its message", known)
		w.stop()
		w.start()
		g.goOn <- struct{}{}
		w.told(place, story, 0, false)
		if now := w.look().in(place)[0]; now.ID != half.ID {
			t.Errorf("the answer is %+v, which grew as %+v", now, half)
		}
	}
}

// streaming opens a direct chat, has a story told there and waits for its first half. It skips the test
// if the service does not stream there.
func (w *world) streaming(asked string) (Place, Shown) {
	w.t.Helper()
	place := w.open(Direct, w.harness.Member)
	w.say(place, asked)
	half := w.half(place)
	if !half.Streams {
		w.t.Skip("nothing streams")
	}
	return place, half
}

func streamsUntilStopped(t testing.TB, w *world) {
	w.telling()
	place, half := w.streaming("tell")
	w.harness.Service.(Stopper).Stop(place, w.harness.Member, half.ID)
	v := w.await("the end", func(v View) bool {
		all := v.in(place)
		first := all[0]
		return len(all) == 2 && !first.Streams && strings.Contains(first.Text, "half,") && strings.Contains(first.Text, "Stopped") &&
			strings.HasPrefix(all[1].Text, "Stopped.")
	})
	if len(v.Working) > 0 {
		t.Errorf("the bot seems to be at work in %q", v.Working)
	}
}

func streamsOn(t testing.TB, w *world) {
	g := w.telling()
	story := w.story(g)
	for _, refused := range []bool{false, true} {
		known := make(chan struct{})
		once := sync.OnceFunc(func() { close(known) })
		w.store.onJob(func(_ context.Context, j record, write func() error) error {
			err := write()
			if j.Work.Preview != nil && j.Work.Preview.ID != "" && strings.HasPrefix(j.Message.Text, "tell on") {
				once()
			}
			return err
		})
		before := len(w.look().in(w.open(Direct, w.harness.Member)))
		place, half := w.streaming("tell on")
		until(t, "the record of its message", known)
		w.stop()
		if refused {
			w.harness.Inject(place, Fault{Effect: Refused, Edit: true})
		}
		w.start()
		g.goOn <- struct{}{}
		if !refused {
			w.told(place, story, before, false)
			if now := w.look().in(place)[before]; now.ID != half.ID {
				t.Errorf("the answer is %+v, which grew as %+v", now, half)
			}
			continue
		}
		w.told(place, story, before+1, true)
		if left := w.look().in(place)[before]; left.Streams || left.ID != half.ID {
			t.Errorf("of the stream there is left %+v", left)
		}
	}
}
