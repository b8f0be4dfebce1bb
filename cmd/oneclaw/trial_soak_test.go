package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/platformtest"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// The soak: so many messages a second from so many chats of both platforms. No more than
// soakBacklog of them wait for their answers, whatever the machine can do.
const (
	soakPace    = 50
	soakPeople  = 160 // on Telegram
	soakMembers = 40  // on Slack
	soakBacklog = 300
)

// What the program may use more at the end than after the first round. The goroutines
// and descriptors are those of connections that are kept for the next request.
const (
	soakGoroutines = 60
	soakFiles      = 40
	soakHeap       = 24 << 20 // caches that fill up
	soakHeapEach   = 256      // for each message
	soakFile       = 16 << 20 // the file grows in steps
	soakFileEach   = 6 << 10  // for each message: the question, the answer, the receipt
)

// soakTime is how long the soak lasts: 40 seconds unless TEST_ONECLAW_SOAK says.
func soakTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("TEST_ONECLAW_SOAK")); err == nil && d > 0 {
		return d
	}
	return 40 * time.Second
}

// soak is the real program between two platforms.
type soak struct {
	t       *testing.T
	w       *harness
	slack   *slack.Server
	bot     *process
	address string
	people  []int64
	dms     []string
	members []string
	said    int
	each    map[any]int // messages by chat
}

func newSoak(t *testing.T) *soak {
	w := newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		return openai.Reply{Text: "re: " + req.Messages[len(req.Messages)-1].Content, Delay: 20 * time.Millisecond}, nil
	}))
	s := &soak{t: t, w: w, address: freeAddress(t), each: map[any]int{}}
	token := w.env["TELEGRAM_BOT_TOKEN"]
	for n := range soakPeople {
		s.people = append(s.people, w.person(fmt.Sprint("person ", n)))
	}
	names := make([]string, soakMembers)
	for n := range names {
		names[n] = fmt.Sprint("member", n)
	}
	s.slack, _, s.members = w.withSlack(t, names...)
	for _, who := range s.members {
		dm, err := s.slack.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: []string{who}})
		if err != nil {
			t.Fatal(err)
		}
		s.dms = append(s.dms, dm)
	}
	w.env["TELEGRAM_BOT_TOKEN"], w.env["ONECLAW_ALLOW"], w.env["ONECLAW_LISTEN"] = token, "*", s.address
	s.bot = w.run()
	waitSlack(t, s.slack, "socket", func(s slack.State) bool { return s.ActiveSockets() > 0 })
	return s
}

// say has the next chat write, every fifth time one of Slack.
func (s *soak) say() {
	n := s.said
	s.said++
	if n%5 == 4 {
		at := n / 5 % len(s.dms)
		s.each[s.dms[at]]++
		sayTo(s.t, s.slack, s.dms[at], s.members[at], fmt.Sprint("message ", s.each[s.dms[at]]), "")
		return
	}
	who := s.people[(n-n/5)%len(s.people)]
	s.each[who]++
	s.w.say(who, fmt.Sprint("message ", s.each[who]), nil)
}

func (s *soak) answered() (n int) {
	s.w.telegram.View(func(st telegram.State) { n = st.CountAnswers(0) })
	s.slack.View(func(st slack.State) { n += st.CountAnswers("") })
	return n
}

// caughtUp waits until all is answered.
func (s *soak) caughtUp() {
	s.t.Helper()
	onSlack := s.said / 5
	s.w.until(s.bot, "answer to everything", func(st telegram.State) bool { return st.CountAnswers(0) >= s.said-onSlack })
	waitSlack(s.t, s.slack, "answer to everything", func(st slack.State) bool { return st.CountAnswers("") >= onSlack })
}

// use is what the program uses.
type use struct{ goroutines, files, heap, resident, database int }

func (u use) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %.1f MiB in use on the heap, %.1f MiB resident, database of %.1f MiB",
		u.goroutines, u.files, float64(u.heap)/(1<<20), float64(u.resident)/(1<<20), float64(u.database)/(1<<20))
}

// use asks the program. The garbage collector runs again when the heap has doubled, so
// half of that is what was in use when it ran last.
func (s *soak) use() use {
	s.t.Helper()
	page := get(s.t, "http://"+s.address+"/metrics")
	value := func(name string) int {
		_, rest, ok := strings.Cut(page, "\n"+name+" ")
		text, _, _ := strings.Cut(rest, "\n")
		f, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			s.t.Fatalf("no %s in %s", name, page)
		}
		return int(f)
	}
	return use{
		goroutines: value("go_goroutines"), files: value("process_open_fds"), heap: value("go_memstats_next_gc_bytes") / 2,
		resident: value("process_resident_memory_bytes"), database: value("oneclaw_database_size_bytes"),
	}
}

// TestTrialSoak has people write for as long as TEST_ONECLAW_SOAK says, with a round
// before that fills what is kept for each chat. All is answered, in order and once, and
// the program uses no more than before but what it keeps of each message.
func TestTrialSoak(t *testing.T) {
	platformtest.OnlyNightly(t)
	t.Parallel()
	s := newSoak(t)
	for range 2 * (soakPeople + soakMembers) {
		s.say()
	}
	s.caughtUp()
	before, first := s.use(), s.said
	tick := time.NewTicker(time.Second / soakPace)
	defer tick.Stop()
	begun, end := time.Now(), time.After(soakTime())
	for busy := true; busy; {
		select {
		case <-end:
			busy = false
		case <-tick.C:
			if s.said-s.answered() < soakBacklog {
				s.say()
			}
		}
	}
	took := time.Since(begun)
	s.caughtUp()
	after, messages := s.settled(before), s.said-first
	t.Logf("%d messages in %s, %.1f a second; before: %s; after: %s; %d bytes of the database for each message",
		messages, took.Round(time.Second), float64(messages)/took.Seconds(), before, after, (after.database-before.database)/messages)
	if after.heap > before.heap+soakHeap+messages*soakHeapEach {
		t.Errorf("the heap grew from %d to %d bytes in %d messages", before.heap, after.heap, messages)
	}
	if after.database > before.database+soakFile+messages*soakFileEach {
		t.Errorf("the database grew from %d to %d bytes in %d messages", before.database, after.database, messages)
	}
	s.bot.kill(syscall.SIGTERM)
	for _, who := range s.people {
		checkFlood(t, s.w.answers(who), s.each[who])
	}
	for _, dm := range s.dms {
		checkOnce(t, botSaid(s.slack.Messages(dm)), s.each[dm])
	}
}

// settled waits until the program uses as few goroutines and descriptors as before, and
// some for connections that it keeps.
func (s *soak) settled(before use) use {
	s.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for {
		now := s.use()
		if now.goroutines <= before.goroutines+soakGoroutines && now.files <= before.files+soakFiles {
			return now
		}
		select {
		case <-tick.C:
		case <-end:
			s.t.Errorf("goroutines or descriptors grew. Before: %s; after: %s", before, now)
			return now
		}
	}
}
