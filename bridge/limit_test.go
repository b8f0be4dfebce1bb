package bridge_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

const refusal = "so I take no more"

// refusals are the messages that say that too much waits.
func refusals(all []sent) (told []sent) {
	for _, s := range all {
		if strings.Contains(s.text, refusal) {
			told = append(told, s)
		}
	}
	return told
}

// openJobs counts what the store has to be carried on.
func openJobs(t *testing.T, store storage.Store) (n int) {
	t.Helper()
	for _, err := range store.List(t.Context(), storage.Range{Prefix: "job/open/"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestABurstIsBoundedAndToldOnce(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think, func(c *bridge.Config) { c.Limits.MaxWaiting, c.Limits.MaxWaitingMember = 2, 1000 })
	for burst := range 2 {
		r.accept(group(fmt.Sprint("s", burst), "5", "slow"))
		<-s.asked
		var flood []chats.Message
		for n := range 200 {
			flood = append(flood, group(fmt.Sprint(burst, "-", n), "6", fmt.Sprint("message ", burst, " ", n)))
		}
		r.accept(flood[:100]...)
		r.accept(flood...) // some of it twice
		before := 4 * burst
		told := r.platform.wait(t, before+1)[before]
		if !strings.Contains(told.text, "2 messages are waiting here") || told.to.ReplyTo != fmt.Sprint(burst, "-2") {
			t.Errorf("told %q in reply to %q", told.text, told.to.ReplyTo)
		}
		if load := r.bridge.QueueStats(); load.Waiting != 2 {
			t.Errorf("%d messages wait", load.Waiting)
		}
		// The notice itself may still be open, and what was answered for a moment.
		r.jobs("job/open/", func([]queue.Job) bool { return openJobs(t, r.cfg.Store) <= 4 })
		s.free <- struct{}{}
		got := texts(r.platform.wait(t, before+4)[before+1:])
		if want := fmt.Sprintf("[re: slow re: message %d 0 re: message %[1]d 1]", burst); fmt.Sprint(got) != want {
			t.Errorf("answers: %q, want %s", got, want)
		}
		// What was refused stays refused, although there is room now.
		r.accept(flood...)
	}
	r.accept(group("end", "7", "end"))
	if got := texts(r.platform.wait(t, 9)); got[8] != "re: end" || len(got) != 9 {
		t.Errorf("answers: %q", got)
	}
}

// Another replica stores a message while the owner of its chat refuses it, as with the two events that
// Slack sends for a mention. It is refused once, and its chat goes on.
func TestAMessageThatIsStoredWhileItIsRefusedHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store, full := newSlow(), &faulty{}, in("7", "3", "three")
		var other *harness
		var stored atomic.Bool
		store.write = func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
			refuses := slices.ContainsFunc(ops, func(op storage.Op) bool {
				return op.Key == receipts.Prefix+"fake:7/3/text" && op.Kind == storage.KindPut
			})
			if refuses && !stored.Swap(true) {
				other.accept(full)
			}
			return do()
		}
		all := newSeveral(t, 2, s.think, func(c *bridge.Config) {
			if store.Store == nil {
				store.Store = c.Store
			}
			c.Store, c.Limits.MaxWaiting = store, 1
		})
		var owner *harness
		owner, other = all.sides(t, "7")
		owner.accept(in("7", "1", "slow one"), in("7", "2", "two"))
		<-s.asked
		owner.accept(full)
		pass(t, 1)
		close(s.free)
		pass(t, 10)
		owner.accept(in("7", "4", "four"), full)
		pass(t, 10)
		all.once(t, "re: slow one", "re: two", "re: four")
		if told := refusals(owner.platform.shown()); !stored.Load() || len(told) != 1 || slices.Contains(all.texts(), "re: three") {
			t.Errorf("it was stored meanwhile: %v, answers: %q", stored.Load(), all.texts())
		}
		all.stop(t)
	})
}

// TestAMemberLeavesRoomForTheOthers floods a group, in all of its threads.
func TestAMemberLeavesRoomForTheOthers(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think, func(c *bridge.Config) { c.Limits.MaxWaiting, c.Limits.MaxWaitingMember = 10, 3 })
	r.accept(group("s", "5", "slow"))
	<-s.asked
	thread := func(m chats.Message) chats.Message {
		m.Chat.Thread = "7"
		return m
	}
	r.accept(thread(group("t", "5", "slow")))
	<-s.asked
	for n := range 20 {
		r.accept(group(fmt.Sprint("m", n), "6", "m"), thread(group(fmt.Sprint("t", n), "6", "t")), group(fmt.Sprint("c", n), "6", "/help"))
	}
	r.accept(group("o", "7", "other"))
	r.accept(thread(group("u", "7", "other")))
	alone := direct("d", "direct")
	alone.User = "6" // is not counted in what others see
	r.accept(alone)
	r.platform.until(t, "answer in the direct chat", func(all []sent) bool { return strings.Contains(fmt.Sprint(texts(all)), "re: direct") })
	close(s.free)
	count := map[string]int{}
	for _, s := range r.platform.until(t, "answers to the others", func(all []sent) bool {
		return strings.Count(fmt.Sprint(texts(all)), "re: other") == 2
	}) {
		count[s.text]++
	}
	if n := count["re: m"] + count["re: t"]; n > 3 {
		t.Errorf("%d messages of the member were answered", n)
	}
	if told := refusals(r.platform.wait(t, 1)); len(told) != 1 || !strings.Contains(told[0].text, "of your messages") {
		t.Errorf("told %q", texts(told))
	}
}

// TestCommandsAreBoundedToo floods a chat with commands whose replies are put
// off. A /stop takes effect all the same, once.
func TestCommandsAreBoundedToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, floodCommands) // a /stop ends commands that wait for a second
}

func floodCommands(t *testing.T) {
	h := newHanging()
	r := newHarness(t, h.think, func(c *bridge.Config) { c.Limits.MaxWaiting = 3 })
	r.stop()
	p := &putOff{platform: r.platform, beginning: helpBegins, tried: make(chan struct{}, 1)}
	r.cfg.Platforms = []chats.Platform{p}
	r.start()
	r.accept(direct("1", "hang"))
	<-h.begun
	r.accept(direct("2", "/help"))
	<-p.tried
	for n := range 50 {
		r.accept(direct(fmt.Sprint("h", n), "/help"))
	}
	if told := r.platform.wait(t, 1); len(told) != 1 || !strings.Contains(told[0].text, "3 commands are waiting") {
		t.Errorf("told %q", texts(told))
	}
	r.accept(direct("3", "/stop"))
	within(t, h.ended, "end of the turn")
	r.accept(direct("4", "hang"), direct("3", "/stop"))
	r.stop()
	p.through.Store(true)
	r.start()
	within(t, h.begun, "the turn after the /stop")
	all := r.platform.wait(t, 5)
	told := slices.DeleteFunc(refusals(all), func(s sent) bool { return s.repeat }) // the stop may come before the record
	if len(told) != 1 {
		t.Errorf("answers: %q", texts(all))
	}
}

// TestARefusalOutlivesAnyKill kills the program at each step of a burst. What
// the platform gives again is answered or refused, and nothing is told twice without a
// mark.
func TestARefusalOutlivesAnyKill(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 12, func(t *testing.T, life *mortal) {
		s := newSlow()
		r := newHarness(t, s.think, func(c *bridge.Config) { c.Limits.MaxWaiting = 1 })
		r.stop()
		store, shown := r.cfg.Store, r.platform
		r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
		r.start()
		messages := []chats.Message{direct("1", "slow"), direct("2", "two"), direct("3", "three")}
		for i, m := range messages {
			if r.bridge.Accept(t.Context(), m) == nil && i == 0 {
				select {
				case <-s.asked:
				case <-life.dead:
				}
			}
		}
		if life.dies == 0 {
			shown.wait(t, 1)
			r.jobs("job/done/", func(all []queue.Job) bool { return len(all) == 2 })
		}
		r.stop()
		r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
		close(s.free)
		r.start()
		r.accept(messages...)
		refused := 0
		r.jobs("job/done/", func(all []queue.Job) bool {
			known := 0
			refused = 0
			for _, j := range all {
				if j.Message.Kind != chats.KindText {
					continue
				}
				known++
				if j.State == receipts.Refused {
					refused++
				}
			}
			return known == len(messages)
		})
		shown.until(t, "word about each", func(all []sent) bool {
			return strings.Count(fmt.Sprint(texts(all)), "re: ")+refused >= len(messages) && (refused == 0 || len(refusals(all)) > 0)
		})
		r.stop()
		noneTwiceUnmarked(t, shown.sent)
	})
}
