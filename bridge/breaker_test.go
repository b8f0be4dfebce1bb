package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
)

var errCut = errors.New("the connection broke")

// outage is a platform that is out of order between two moments, and counts what it is
// asked meanwhile.
type outage struct {
	*platform

	// outcome is what becomes of a send meanwhile, pings whether it answers those.
	outcome chats.Outcome
	pings   bool
	silent  bool // it answers no question meanwhile

	mu          sync.Mutex
	until       time.Time
	asked, sent int
}

func (o *outage) down() bool { return time.Now().Before(o.until) }

// begin has it go out of order for a while.
func (o *outage) begin(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = time.Now().Add(d)
}

func (o *outage) counts() (asked, sent int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked, o.sent
}

func (o *outage) Ping(ctx context.Context) error {
	o.mu.Lock()
	o.asked++
	down := o.down() && !o.pings
	o.mu.Unlock()
	if down && o.silent {
		<-ctx.Done()
	}
	if down {
		return errCut
	}
	return nil
}

// fate is the fail of the platform.
func (o *outage) fate(_ int, arrived bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.down() || arrived {
		return nil
	}
	o.sent++
	return &chats.SendError{Outcome: o.outcome, Outage: true, Err: errCut}
}

func newOutage(t *testing.T, outcome chats.Outcome, pings bool) (*harness, *outage) {
	t.Helper()
	o := &outage{outcome: outcome, pings: pings}
	r := newHarness(t, echo, func(cfg *bridge.Config) {
		o.platform, _ = cfg.Platforms[0].(*platform)
		o.fail = o.fate
		cfg.Platforms = []chats.Platform{o}
	})
	return r, o
}

// saidIn is a message in a direct chat of its own.
func saidIn(chat, id int, text string) chats.Message {
	m := direct(fmt.Sprint(id), text)
	m.Chat.ID, m.User = fmt.Sprint(chat), fmt.Sprint(chat)
	return m
}

// TestAnOutageLosesNothing has the platform out of order for hours while answers
// wait in a hundred chats, five in each: none is lost, the order stays, nothing comes
// twice, and the platform is asked by one, not by all.
func TestAnOutageLosesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		outcome chats.Outcome
		pings   bool
		lasts   time.Duration
		marks   int // at most
		sends   int // at most, in vain
		pinged  int // at most, while it lasts
	}{
		{"takes the request and closes", chats.Unknown, false, 6 * time.Hour, 100, 100, 6 * 60 * 24},
		{"takes the request and closes for a moment", chats.Unknown, false, 45 * time.Second, 100, 100, 20},
		{"answers 504 and says that it is well", chats.Unknown, true, 30 * time.Second, 110, 110, 20},
		{"cannot be reached", chats.Later, false, 6 * time.Hour, 0, 100, 6 * 60 * 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const chats, each = 100, 5
				r, o := newOutage(t, c.outcome, c.pings)
				o.begin(c.lasts)
				for n := range chats * each {
					r.accept(saidIn(n%chats, n, fmt.Sprint("message ", n/chats)))
				}
				pass(t, int(c.lasts.Seconds())-1)
				asked, _ := o.counts()
				if asked > c.pinged {
					t.Errorf("asked %d times whether it is back", asked)
				}
				r.waitLong(chats * each)
				pass(t, 3600)
				r.stop()
				if _, sent := o.counts(); sent > c.sends {
					t.Errorf("%d sends in vain", sent)
				}
				if marks := inOrder(t, o.platform, chats, each); marks > c.marks {
					t.Errorf("%d answers are marked, want at most %d", marks, c.marks)
				}
			})
		})
	}
}

// However long a platform was out of order, what waits begins to be sent within five seconds
// after it takes messages again, and one asks for all: every two and a half seconds at most, but
// for the first questions.
func TestDeliveryBeginsSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		outcome chats.Outcome
		pings   bool // it says that it is well meanwhile
		silent  bool // it leaves questions without an answer
	}{
		{name: "refuses", outcome: chats.Later},
		{name: "cuts off", outcome: chats.Unknown},
		{name: "is silent", outcome: chats.Unknown, silent: true},
		{name: "says that it is well", outcome: chats.Later, pings: true},
	} {
		for _, lasts := range []time.Duration{time.Second, 25 * time.Second, 10*time.Minute + 7*time.Second, 6 * time.Hour} {
			t.Run(fmt.Sprint(c.name, " for ", lasts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, o := newOutage(t, c.outcome, c.pings)
					o.silent = c.silent
					o.begin(lasts)
					for n := range 20 {
						r.accept(saidIn(n, n, "hello"))
					}
					pass(t, int(lasts.Seconds()))
					if n := len(o.texts()); n > 0 {
						t.Fatalf("%d answers came through the outage", n)
					}
					if asked, most := o.counts(); asked > 10+int(lasts/(2500*time.Millisecond)) {
						t.Errorf("asked %d times, sent %d times", asked, most)
					}
					pass(t, 5)
					if len(o.texts()) == 0 {
						t.Error("nothing was sent five seconds after the outage")
					}
					r.stop()
				})
			})
		}
	}
}

// inOrder checks that each chat got its answers, each once, and counts the marked ones.
func inOrder(t *testing.T, p *platform, chats, each int) (marks int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	next := map[string]int{}
	for _, s := range p.sent {
		if want := fmt.Sprint("re: message ", next[s.to.Chat.ID]); s.text != want {
			t.Errorf("chat %s got %q where %q was due", s.to.Chat.ID, s.text, want)
		}
		next[s.to.Chat.ID]++
		if s.repeat {
			marks++
		}
	}
	for chat, n := range next {
		if n != each {
			t.Errorf("chat %s got %d answers, want %d", chat, n, each)
		}
	}
	if len(next) != chats {
		t.Errorf("%d chats got answers, want %d", len(next), chats)
	}
	return marks
}

// TestNothingIsGivenUpInSilence has the platform out of order for two days, and
// the program restarted in between: what waited for a day is on record, and the chat is
// told once the platform is back. What is asked then is answered.
func TestNothingIsGivenUpInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, o := newOutage(t, chats.Unknown, false)
		o.begin(48 * time.Hour)
		r.accept(direct("1", "old"), direct("2", "young"))
		pass(t, 20*3600)
		r.restart()
		if all := deadLetters(t, r); len(all) != 0 {
			t.Errorf("set aside after 20 hours: %+v", all)
		}
		pass(t, 5*3600)
		all := deadLetters(t, r)
		if len(all) != 1 || all[0].Key != "job/open/fake:1/1/text" || all[0].Chat != "fake:1" || all[0].Incident == "" ||
			!strings.Contains(string(all[0].Data), "re: old") || strings.Contains(all[0].Reason, "old") {
			t.Fatalf("set aside are %+v", all)
		}
		r.restart()
		pass(t, 24*3600)
		r.waitLong(2)
		got := o.texts()
		if !strings.Contains(got[0], all[0].Incident) || !strings.Contains(got[0], "could not send this answer for a day") || got[1] != "re: young" {
			t.Errorf("shown are %q", got)
		}
		r.accept(direct("3", "new"), direct("4", "/why"))
		r.waitLong(4)
		if got := o.texts(); got[2] != "re: new" && got[3] != "re: new" {
			t.Errorf("shown are %q", got)
		}
		pass(t, 40*24*3600)
		if all := deadLetters(t, r); len(all) != 0 {
			t.Errorf("still set aside: %+v", all)
		}
		r.stop()
	})
}

func deadLetters(t *testing.T, r *harness) []queue.DeadLetter {
	t.Helper()
	all, err := queue.ListDeadLetters(t.Context(), r.cfg.Store)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestOnePoisonedAnswerHoldsUpNobody has each send of one answer fail as in an outage, although the platform
// says that it is well: the other chats go on, the copies are few, and after a day the answer is given up and
// its chat goes on, too.
func TestOnePoisonedAnswerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		outcome      chats.Outcome
		least, most  int // copies in a day
		longestDelay time.Duration
	}{
		{name: "after it is shown", outcome: chats.Unknown, least: 8, most: 38, longestDelay: 2 * time.Second},
		{name: "before it is shown", outcome: chats.Later, longestDelay: maxOutagePause + time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &outage{}
				r := newHarness(t, echo, func(cfg *bridge.Config) {
					o.platform, _ = cfg.Platforms[0].(*platform)
					cfg.Platforms = []chats.Platform{poisoned{o, c.outcome}}
				})
				r.accept(saidIn(0, 1, "poison"), saidIn(0, 2, "next"))
				for n := range 100 {
					begun := time.Now()
					r.accept(saidIn(1, n, fmt.Sprint("message ", n)))
					o.awaitIn(t, "1", n+1)
					if took := time.Since(begun); took > c.longestDelay {
						t.Errorf("answer %d took %s", n, took)
					}
					pass(t, 20*60)
				}
				all := o.in("0")
				if n := len(all); n < 2 || !strings.Contains(all[n-2].text, "stopped trying") || all[n-1].text != "re: next" {
					t.Fatalf("in the end there are %q", texts(all))
				}
				copies := all[:len(all)-2]
				if n := len(copies); n < c.least || n > c.most {
					t.Errorf("%d copies in a day", n)
				}
				for n, s := range copies {
					if n > 0 && !s.repeat {
						t.Errorf("a copy has no mark: %q", s.text)
					}
				}
				if all := deadLetters(t, r); len(all) != 1 {
					t.Errorf("set aside are %+v", all)
				}
				r.stop()
			})
		})
	}
}

// TestANoticeThatNeverArrivesHoldsUpNobody has each send of a chat fail for days, although the platform says
// that it is well. The notice about the answer fails like the answer, and is given up a day later.
func TestANoticeThatNeverArrivesHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]chats.Outcome{"answers are lost": chats.Unknown, "nothing arrives": chats.Later} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, o := newOutage(t, outcome, true)
				o.begin(51 * time.Hour)
				r.accept(direct("1", "old"), direct("2", "next"))
				pass(t, 50*3600)
				if got := receipt(t, r, "fake:1/1/text"); got.State != receipts.Failed {
					t.Errorf("after two days the first message is %q", got.State)
				}
				pass(t, 3*3600)
				if got := o.texts(); len(got) != 1 || got[0] != "re: next" {
					t.Errorf("in the end there are %q", got)
				}
				if all := deadLetters(t, r); len(all) != 1 {
					t.Errorf("set aside are %+v", all)
				}
				r.stop()
			})
		})
	}
}

// TestANoticeOutlastsALongOutage has the platform out of reach for days; then it is well for an hour in which
// sends still fail. The time in which it could not be reached does not count against the notice.
func TestANoticeOutlastsALongOutage(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint("restarts: ", restarts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, o := newOutage(t, chats.Later, false)
				o.begin(100 * time.Hour)
				r.accept(direct("1", "old"))
				if pass(t, 90*3600); restarts {
					r.restart()
				}
				pass(t, 9*3600+1800)
				o.mu.Lock()
				o.pings = true
				o.mu.Unlock()
				pass(t, 2*3600)
				if got := o.texts(); len(got) != 1 || !strings.Contains(got[0], "stopped trying") {
					t.Errorf("in the end there are %q", got)
				}
				r.stop()
			})
		})
	}
}

// maxOutagePause is how long a send waits at most where another one has failed.
const maxOutagePause = 5 * time.Second

// poisoned fails each send of one answer: after it is shown if the outcome is unknown, otherwise before.
type poisoned struct {
	*outage
	outcome chats.Outcome
}

func (p poisoned) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	if part.Text != "re: poison" {
		return p.platform.Send(ctx, to, part)
	}
	if p.outcome == chats.Unknown {
		if _, err := p.platform.Send(ctx, to, part); err != nil {
			return "", err
		}
	}
	return "", &chats.SendError{Outcome: p.outcome, Outage: p.outcome == chats.Later, Err: errCut}
}

// in returns what was sent to a chat.
func (p *platform) in(chat string) (all []sent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sent {
		if s.to.Chat.ID == chat {
			all = append(all, s)
		}
	}
	return all
}

// awaitIn waits for as many messages in a chat.
func (p *platform) awaitIn(t *testing.T, chat string, n int) {
	t.Helper()
	p.until(t, fmt.Sprintf("%d messages in chat %s", n, chat), func(all []sent) bool {
		there := 0
		for _, s := range all {
			if s.to.Chat.ID == chat {
				there++
			}
		}
		return there >= n
	})
}

// TestCommandsAndTheEndDoNotWaitForThePlatform: /stop and /clear take effect while
// nothing can be sent, and the bridge ends.
func TestCommandsAndTheEndDoNotWaitForThePlatform(t *testing.T) {
	for command, state := range map[string]receipts.State{"/stop": receipts.Stopped, "/clear": receipts.Cleared} {
		t.Run(command, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, o := newOutage(t, chats.Unknown, false)
				o.begin(30 * time.Minute)
				r.accept(saidIn(7, 9, "the one that asks"))
				pass(t, 1)
				r.accept(direct("1", "one"), direct("2", "two"))
				pass(t, 600)
				r.accept(direct("3", command))
				pass(t, 5)
				for _, id := range []string{"1", "2"} {
					if got := receipt(t, r, "fake:1/"+id+"/text"); got.State != state {
						t.Errorf("message %s is %q while the platform is out of order", id, got.State)
					}
				}
				begun := time.Now()
				r.stop()
				if took := time.Since(begun); took > time.Minute {
					t.Errorf("the end took %s", took)
				}
				r.start()
				r.waitLong(2)
				pass(t, 3600)
				r.stop()
				for _, text := range o.texts() {
					if strings.Contains(text, "re: one") || strings.Contains(text, "re: two") {
						t.Errorf("after %s came %q", command, text)
					}
				}
				if n := len(o.texts()); n != 2 {
					t.Errorf("shown are %q", o.texts())
				}
			})
		})
	}
}

// TestAFloodIsNoOutage: a refusal of one chat, or a limit, asks nobody anything.
func TestAFloodIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, o := newOutage(t, chats.Later, false)
		o.fail = outcomes(map[int]*chats.SendError{
			1: {Outcome: chats.Later, RetryAfter: time.Hour, Err: errCut},
			2: {Outcome: chats.Refused, Err: errCut},
			3: {Outcome: chats.Later, Err: errCut},
		})
		r.accept(saidIn(1, 1, "a"))
		synctest.Wait()
		r.accept(saidIn(2, 1, "b"), saidIn(3, 1, "c"))
		r.waitLong(1)
		if asked, _ := o.counts(); asked != 0 {
			t.Errorf("asked %d times whether the platform is back", asked)
		}
		r.stop()
	})
}

// TestEditsWaitToo: a card that changed during an outage is edited when it is over.
func TestEditsWaitToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outage{}
		r := newHarness(t, echo, func(cfg *bridge.Config) {
			o.platform, _ = cfg.Platforms[0].(*platform)
			cfg.Platforms = []chats.Platform{editable{o}}
			cfg.CardHandlers = map[string]interact.Handler{"test": func(context.Context, interact.Press) (interact.Result, error) {
				return interact.Result{Text: "pressed", Close: true}, nil
			}}
		})
		err := r.bridge.Post(t.Context(), "k", chats.Chat{Platform: "fake", ID: "1"}, interact.Card{
			Kind: "test", Text: "question", Choices: [][]interact.Choice{{{Label: "yes", Value: "yes"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		card := o.wait(t, 1)[0]
		synctest.Wait()
		o.begin(3 * time.Hour)
		press := direct("p", card.buttons[0][0].Data)
		press.Kind, press.TargetID = chats.KindPress, card.id
		r.accept(press)
		pass(t, 4*3600)
		if got := o.texts(); len(got) != 1 || got[0] != "pressed" {
			t.Errorf("shown are %q", got)
		}
		r.stop()
	})
}

// An edit that fails as in an outage, although the platform says that it is well, is given up after a day.
func TestOnePoisonedEditHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{outcome: chats.Later, pings: true}
		r := newHarness(t, echo, func(cfg *bridge.Config) {
			o.platform, _ = cfg.Platforms[0].(*platform)
			cfg.Platforms = []chats.Platform{editable{o}}
			voting(&voter{})(cfg)
		})
		if err := r.bridge.Post(t.Context(), "k", direct("", "").Chat, vote()); err != nil {
			t.Fatal(err)
		}
		card := o.wait(t, 1)[0]
		o.begin(48 * time.Hour)
		r.accept(pressOn(card, "p", "1", card.buttons[0][0].Data))
		pass(t, 25*3600)
		if all := deadLetters(t, r); len(all) != 1 {
			t.Errorf("set aside are %+v", all)
		}
		if open := r.bridge.QueueStats().Open; open != 0 {
			t.Errorf("%d jobs are open", open)
		}
		r.stop()
	})
}

// editable fails edits during the outage.
type editable struct{ *outage }

func (e editable) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	if err := e.fate(0, false); err != nil {
		return err
	}
	return e.platform.Edit(ctx, to, id, part)
}

// receipt returns a job that is closed.
func receipt(t *testing.T, r *harness, key string) (j queue.Job) {
	t.Helper()
	entry, err := r.cfg.Store.Get(t.Context(), "job/done/"+key)
	if err == nil {
		err = json.Unmarshal(entry.Value, &j)
	}
	if err != nil {
		t.Errorf("no receipt for %s: %v", key, err)
	}
	return j
}
