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
	// Remove makes a user who is allowed to do so delete a message of the bot.
	Remove(in Place, message string)
}

// Stopper is a [Service] with its own button to stop an answer that grows.
type Stopper interface {
	// Stop makes a user press that button under a message of the bot.
	Stop(in Place, by, message string)
}

func growingProperties() []property {
	return []property{
		{"Grows", "A slow answer is shown while it is generated, in one message that ends as it would without previews; a message that is delivered twice is answered once.", testGrows},
		{"GrowsInAFlood", "Rate limits delay an answer that grows, and none of it is lost.", testGrowsInAFlood},
		{"GrowsAndIsLost", "If the response to the first part is lost, the whole answer follows, marked; if the response to an edit is lost, nothing is duplicated.", testGrowsAndIsLost},
		{"GrowsSlowly", "On a slow service, and if edits fail, the answer is complete and appears once.", testGrowsSlowly},
		{"GrowsNoMore", "An answer whose first message was deleted, or can no longer be edited, is sent completely.", testGrowsNoMore},
		{"GrowsUntilStopped", "The button under an answer that grows stops it: the text shown so far stays, with a note, and the button is removed.", testGrowsUntilStopped},
		{"StreamsUntilStopped", "The service's own stop button does what the bot's button does, and the bot no longer appears to be working.", testStreamsUntilStopped},
		{"StreamsAcrossAKill", "If the bot is killed while an answer streams, the answer is completed in its message; if that can no longer be edited, the answer follows, marked.", testStreamsAcrossAKill},
		{"SaysWhatItDoes", "While tools run, a line in plain text says what they do; it is removed in the end.", testSaysWhatItDoes},
		{"GrowsAcrossARestart", "If the bot restarts while an answer grows, the answer continues in its message.", testGrowsAcrossARestart},
	}
}

const (
	firstHalf  = "**The first** half, "
	secondHalf = "the *second* half."
)

// storyAgent is an agent that tells a story in two halves to users who ask for one; it tells the second
// half when it is released. It answers other questions at once.
type storyAgent struct {
	release chan struct{}
}

func (g *storyAgent) speak(ctx context.Context, said []string, show func(string)) string {
	if last := said[len(said)-1]; !strings.HasPrefix(last, "tell") {
		return echo(ctx, said)
	}
	show(firstHalf)
	select {
	case <-g.release:
	case <-ctx.Done():
	}
	show(secondHalf)
	return firstHalf + secondHalf
}

// startStory starts a bot whose answers grow, or skips the test.
func (w *world) startStory() *storyAgent {
	w.t.Helper()
	if _, ok := w.harness.Adapter().(chats.Previewer); !ok {
		w.t.Skip("the platform shows no answers that grow")
	}
	g := &storyAgent{release: make(chan struct{}, 64)}
	w.stream = g.speak
	w.cfg.Turns.RedactPartial = func(text string) string { return text[:strings.LastIndexByte(text, ' ')+1] }
	w.start()
	return g
}

// awaitFirstHalf waits until a place shows the first half of a story, and returns its message.
func (w *world) awaitFirstHalf(in Place) Shown {
	w.t.Helper()
	got := w.await("the first half", func(v View) bool {
		all := v.inPlace(in)
		return len(all) > 0 && (len(all[len(all)-1].Buttons) > 0 || all[len(all)-1].Streams) && strings.Contains(all[len(all)-1].Text, "half,")
	}).inPlace(in)
	return got[len(got)-1]
}

// wholeStory returns the message of a story that did not grow.
func (w *world) wholeStory(g *storyAgent) Shown {
	w.t.Helper()
	g.release <- struct{}{}
	place := w.open(Direct, w.harness.Member)
	before := len(w.view().inPlace(place))
	w.say(place, "tell at once")
	return w.awaitShown(place, before+1)[before]
}

// awaitStory waits until a place shows only the story, after the given number of other messages. If
// marked is set, the story is marked as a possible repeat.
func (w *world) awaitStory(in Place, story Shown, others int, marked bool) {
	w.t.Helper()
	whole := func(s Shown) bool {
		same := s.Text == story.Text
		if marked {
			same = strings.HasPrefix(s.Text, story.Text) && isMarked(s)
		}
		return same && len(s.Buttons) == 0 && !s.Streams
	}
	got := w.await("the whole answer", func(v View) bool {
		all := v.inPlace(in)
		return len(all) > others && whole(all[others])
	}).inPlace(in)
	if len(got) != others+1 {
		w.t.Errorf("shown: %q, want %d other messages and %q", texts(got), others, story.Text)
	}
}

func testGrows(t testing.TB, w *world) {
	g := w.startStory()
	story := w.wholeStory(g)
	if strings.Contains(story.Text, "\n") {
		t.Fatalf("the story is %q", story.Text)
	}
	for i, place := range w.openAll() {
		before := len(w.view().inPlace(place))
		if i > 0 {
			w.harness.Inject(place, Fault{Effect: DuplicateDelivery})
		}
		id := w.harness.Say(place, w.harness.Member, "tell")
		half := w.awaitFirstHalf(place)
		stops := half.Streams || len(half.Buttons) == 1 && len(half.Buttons[0]) == 1
		if !stops || half.Text == story.Text || half.ReplyTo != "" && half.ReplyTo != id {
			t.Errorf("it grows as %+v", half)
		}
		g.release <- struct{}{}
		w.awaitStory(place, story, before, false)
		if now := w.view().inPlace(place)[before]; now.ID != half.ID || now.ReplyTo != half.ReplyTo {
			t.Errorf("the answer is %+v, which grew as %+v", now, half)
		}
	}
}

func testGrowsInAFlood(_ testing.TB, w *world) {
	g := w.startStory()
	story := w.wholeStory(g)
	begins, changes := w.open(Shared, w.harness.Member), w.open(thread, w.harness.Member)
	w.harness.Inject(begins, Fault{Effect: RateLimited, RetryAfter: time.Second})
	w.say(begins, "tell")
	w.say(changes, "tell")
	w.await("the refusal", func(v View) bool { return v.Sends == 3 })
	w.awaitFirstHalf(changes)
	w.harness.Inject(changes, Fault{Effect: RateLimited, RetryAfter: time.Second, Edit: true})
	g.release <- struct{}{}
	g.release <- struct{}{}
	w.awaitStory(changes, story, 0, false)
	w.awaitStory(begins, story, 0, false)
}

func testGrowsAndIsLost(_ testing.TB, w *world) {
	g := w.startStory()
	story := w.wholeStory(g)
	begins, changes := w.open(Shared, w.harness.Member), w.open(thread, w.harness.Member)
	w.harness.Inject(begins, Fault{Effect: AnswerDropped})
	w.say(begins, "tell")
	w.say(changes, "tell")
	w.awaitFirstHalf(begins)
	w.awaitFirstHalf(changes)
	w.harness.Inject(changes, Fault{Effect: AnswerDropped, Edit: true})
	g.release <- struct{}{}
	g.release <- struct{}{}
	w.awaitStory(changes, story, 0, false)
	w.awaitStory(begins, story, 1, true)
}

func testGrowsSlowly(_ testing.TB, w *world) {
	g := w.startStory()
	story := w.wholeStory(g)
	begins, changes := w.open(Shared, w.harness.Member), w.open(thread, w.harness.Member)
	w.harness.Inject(begins, Fault{Effect: Slow, RetryAfter: time.Second})
	w.say(begins, "tell")
	w.say(changes, "tell")
	w.awaitFirstHalf(changes)
	w.harness.Inject(changes, Fault{Effect: ServerError, Edit: true})
	w.await("the slow one to be under way", func(v View) bool { return v.Sends == 3 })
	g.release <- struct{}{}
	g.release <- struct{}{}
	w.awaitStory(changes, story, 0, false)
	w.awaitStory(begins, story, 0, false)
}

func testGrowsNoMore(t testing.TB, w *world) {
	g := w.startStory()
	remover, ok := w.harness.Service.(Remover)
	if !ok {
		t.Skip("users cannot delete messages of the bot")
	}
	story := w.wholeStory(g)
	deleted, refused := w.open(Shared, w.harness.Member), w.open(thread, w.harness.Member)
	w.say(deleted, "tell")
	w.say(refused, "tell")
	remover.Remove(deleted, w.awaitFirstHalf(deleted).ID)
	w.awaitFirstHalf(refused)
	w.harness.Inject(refused, Fault{Effect: Refused, Edit: true})
	g.release <- struct{}{}
	g.release <- struct{}{}
	w.awaitStory(deleted, story, 0, false)
	w.await("the answer to be whole", func(v View) bool {
		all := v.inPlace(refused)
		last := all[len(all)-1]
		return len(all) <= 2 && last.Text == story.Text && len(last.Buttons) == 0
	})
}

func testGrowsUntilStopped(t testing.TB, w *world) {
	w.startStory()
	presser, ok := w.harness.Service.(Presser)
	if !ok {
		t.Skip("the platform shows no buttons")
	}
	for _, kind := range []Kind{Shared, thread} {
		place := w.open(kind, w.harness.Member)
		w.say(place, "tell")
		half := w.awaitFirstHalf(place)
		presser.Press(place, w.harness.Admin, half.ID, half.Buttons[0][0].Data)
		stopped := func(s Shown) bool {
			return strings.Contains(s.Text, "half,") && strings.Contains(s.Text, "Stopped") && len(s.Buttons) == 0
		}
		w.await("the end", func(v View) bool { all := v.inPlace(place); return len(all) == 1 && stopped(all[0]) })
		w.want(w.awaitSettled(place)[1:])
	}
}

func testSaysWhatItDoes(t testing.TB, w *world) {
	g := w.startStory()
	story := w.wholeStory(g)
	const page = "reading a_b_c.pdf <b>&amp; [x](y), page 2"
	goOn := make(chan struct{})
	w.beforeAnswer = func(ctx context.Context, observe func(agent.Event)) {
		call := agent.ToolEvent{Call: "1", Doing: "reading a_b_c.pdf <b>&amp; [x](y)"}
		observe(agent.Event{ToolBegan: &call})
		call.Progress = "page 2"
		observe(agent.Event{ToolProgress: &call})
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		observe(agent.Event{ToolEnded: &call})
	}
	place := w.open(Shared, w.harness.Member)
	w.say(place, "tell")
	w.await("what it does", func(v View) bool {
		all := v.inPlace(place)
		return len(all) == 1 && len(all[0].Buttons) == 1 && strings.Contains(all[0].Text, page)
	})
	goOn <- struct{}{}
	if half := w.awaitFirstHalf(place); strings.Contains(half.Text, "reading") {
		t.Errorf("it says what it did: %q", half.Text)
	}
	g.release <- struct{}{}
	w.awaitStory(place, story, 0, false)
}

func testGrowsAcrossARestart(t testing.TB, w *world) {
	g := w.startStory()
	story := w.wholeStory(g)
	for _, kind := range []Kind{Shared, thread} {
		known, asked := make(chan struct{}), "tell in a "+string(kind)
		once := sync.OnceFunc(func() { close(known) })
		w.store.onJob(func(_ context.Context, j jobRecord, write func() error) error {
			err := write()
			if j.Work.Preview != nil && j.Work.Preview.ID != "" && strings.HasSuffix(j.Message.Text, asked) {
				once()
			}
			return err
		})
		place := w.open(kind, w.harness.Member)
		w.say(place, asked)
		half := w.awaitFirstHalf(place)
		waitFor(t, "the record of its message", known)
		w.stop()
		w.start()
		g.release <- struct{}{}
		w.awaitStory(place, story, 0, false)
		if now := w.view().inPlace(place)[0]; now.ID != half.ID {
			t.Errorf("the answer is %+v, which grew as %+v", now, half)
		}
	}
}

// startStreaming opens a direct chat, asks for a story there and waits for its first half. It skips the
// test if the service does not stream there.
func (w *world) startStreaming(asked string) (Place, Shown) {
	w.t.Helper()
	place := w.open(Direct, w.harness.Member)
	w.say(place, asked)
	half := w.awaitFirstHalf(place)
	if !half.Streams {
		w.t.Skip("nothing streams")
	}
	return place, half
}

func testStreamsUntilStopped(t testing.TB, w *world) {
	w.startStory()
	place, half := w.startStreaming("tell")
	w.harness.Service.(Stopper).Stop(place, w.harness.Member, half.ID)
	v := w.await("the end", func(v View) bool {
		all := v.inPlace(place)
		first := all[0]
		return len(all) == 2 && !first.Streams && strings.Contains(first.Text, "half,") && strings.Contains(first.Text, "Stopped") &&
			strings.HasPrefix(all[1].Text, "Stopped.")
	})
	if len(v.Working) > 0 {
		t.Errorf("the bot seems to be at work in %q", v.Working)
	}
}

func testStreamsAcrossAKill(t testing.TB, w *world) {
	g := w.startStory()
	story := w.wholeStory(g)
	for _, refused := range []bool{false, true} {
		known := make(chan struct{})
		once := sync.OnceFunc(func() { close(known) })
		w.store.onJob(func(_ context.Context, j jobRecord, write func() error) error {
			err := write()
			if j.Work.Preview != nil && j.Work.Preview.ID != "" && strings.HasPrefix(j.Message.Text, "tell on") {
				once()
			}
			return err
		})
		before := len(w.view().inPlace(w.open(Direct, w.harness.Member)))
		place, half := w.startStreaming("tell on")
		waitFor(t, "the record of its message", known)
		w.stop()
		if refused {
			w.harness.Inject(place, Fault{Effect: Refused, Edit: true})
		}
		w.start()
		g.release <- struct{}{}
		if !refused {
			w.awaitStory(place, story, before, false)
			if now := w.view().inPlace(place)[before]; now.ID != half.ID {
				t.Errorf("the answer is %+v, which grew as %+v", now, half)
			}
			continue
		}
		w.awaitStory(place, story, before+1, true)
		if left := w.view().inPlace(place)[before]; left.Streams || left.ID != half.ID {
			t.Errorf("the interrupted stream is %+v", left)
		}
	}
}
