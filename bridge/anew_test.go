package bridge_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

// musing is a model that says a word, if it is to, and thinks for a while before it answers all
// that its turn was told.
type musing struct {
	thinks time.Duration
	says   string
	// during, if not nil, is called when it is asked. A deaf one goes on where it is broken off.
	during func(ctx context.Context)
	deaf   bool

	mu            sync.Mutex // guards the rest
	calls, broken int
}

func (m *musing) Complete(ctx context.Context, req agent.Request, on func(agent.Delta)) (agent.Reply, error) {
	m.mu.Lock()
	m.calls++
	m.mu.Unlock()
	if m.during != nil {
		m.during(ctx)
	}
	if m.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	if m.says != "" {
		on(agent.Delta{Text: m.says})
	}
	if err := passing(ctx, m.thinks); err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.broken++
		return agent.Reply{}, err
	}
	var said []string
	for _, message := range req.Messages {
		if message.BeginsTurn() {
			said = nil
		}
		if message.Role == agent.RoleUser {
			said = append(said, strings.TrimSpace(message.QuotedText()+message.Text))
		}
	}
	return agent.Reply{Text: "re: " + strings.Join(said, " + ")}, nil
}

// asked checks how often it was asked, and how many of these calls were broken off.
func (m *musing) asked(t *testing.T, calls, broken int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls != calls || m.broken != broken {
		t.Errorf("the model was asked %d times, %d of them broken off; want %d and %d", m.calls, m.broken, calls, broken)
	}
}

func (m *musing) answers(cfg *bridge.Config) { cfg.Turns.Agent = agent.New(agent.Config{Model: m}) }

// line is a message that comes a while after the first.
type line struct {
	at time.Duration
	chats.Message
}

func later(at time.Duration, id, text string) line { return line{at, direct(id, text)} }

// lines has messages come at their times, and everything be answered.
func (r *harness) lines(lines ...line) {
	r.t.Helper()
	began := time.Now()
	for _, l := range lines {
		_ = passing(r.t.Context(), l.at-time.Since(began))
		r.accept(l.Message)
	}
	pass(r.t, 60)
}

const ms = time.Millisecond

func TestQuickLinesAreOneQuestion(t *testing.T) {
	old := func(l line, ago time.Duration) line { l.Time = time.Unix(1000, 0).Add(-ago); return l }
	other := func(at time.Duration, id, user, text string) line { return line{at, group(id, user, text)} }
	for name, tt := range map[string]struct {
		thinks        time.Duration
		lines         []line
		calls, broken int
		want          []string
	}{
		"three lines": {
			time.Second,
			[]line{later(0, "1", "one"), later(200*ms, "2", "two"), later(700*ms, "3", "three")},
			3, 2,
			[]string{"re: one + two + three"},
		},
		"lines at once cost one call more": {
			time.Second,
			[]line{later(0, "1", "one"), later(200*ms, "2", "two"), later(300*ms, "3", "three"), later(400*ms, "4", "four")},
			2, 1,
			[]string{"re: one + two + three + four"},
		},
		"not a third time": {
			time.Second,
			[]line{later(0, "1", "one"), later(200*ms, "2", "two"), later(700*ms, "3", "three"), later(1200*ms, "4", "four")},
			4, 2,
			[]string{"re: one + two + three", "re: four"},
		},
		"not after three seconds, nor what waited before": {
			5 * time.Second,
			[]line{later(0, "1", "one"), later(3100*ms, "2", "two"), later(3200*ms, "3", "three")},
			3, 0,
			[]string{"re: one", "re: two", "re: three"},
		},
		"what comes behind others that wait waits for its turn": {
			5 * time.Second,
			[]line{later(0, "1", "one"), later(3100*ms, "2", "two"), later(3200*ms, "3", "three"), later(5500*ms, "4", "four")},
			4, 0,
			[]string{"re: one", "re: two", "re: three", "re: four"},
		},
		"not what was written long after": {
			time.Second,
			[]line{old(later(0, "1", "one"), 20*time.Minute), old(later(100*ms, "2", "two"), 10*time.Minute)},
			2, 0,
			[]string{"re: one", "re: two"},
		},
		"nobody else's": {
			time.Second,
			[]line{other(0, "1", "1", "one"), other(100*ms, "2", "2", "two"), other(200*ms, "3", "1", "three")},
			3, 0,
			[]string{"re: one", "re: two", "re: three"},
		},
		"their own before another's": {
			time.Second,
			[]line{other(0, "1", "1", "one"), other(100*ms, "2", "1", "two"), other(200*ms, "3", "2", "three")},
			3, 1,
			[]string{"re: one + two", "re: three"},
		},
		"an edit is no new question": {
			time.Second,
			[]line{later(0, "1", "one"), {100 * ms, edit(direct("1", ""), "won")}},
			1, 0,
			[]string{"re: one", "You changed a message that I have already answered. If you want a new answer, please send it again as a new message."},
		},
		"an album is waited for": {
			time.Second,
			[]line{later(0, "1", "one"), {100 * ms, piece(direct("2", "two"), "g")}, {900 * ms, piece(direct("3", "three"), "g")}},
			2, 1,
			[]string{"re: one + two\nthree"},
		},
		"a stop ends all": {
			time.Second,
			[]line{later(0, "1", "one"), later(200*ms, "2", "two"), later(300*ms, "3", "/stop"), later(2*time.Second, "4", "four")},
			2, 1,
			[]string{"Stopped. One waiting message was dropped.", "re: four"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &musing{thinks: tt.thinks}
				r := newHarness(t, nil, m.answers, func(cfg *bridge.Config) { cfg.Now = func() time.Time { return time.Unix(1060, 0) } })
				r.lines(tt.lines...)
				r.stop()
				r.want(t, tt.want...)
				m.asked(t, tt.calls, tt.broken)
			})
		})
	}
}

func TestWithoutSteeringEachLineIsAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &musing{thinks: time.Second}
		r := newHarness(t, nil, m.answers, func(cfg *bridge.Config) { cfg.Turns.SeparateTurns = true })
		r.lines(later(0, "1", "one"), later(200*ms, "2", "two"))
		r.stop()
		r.want(t, "re: one", "re: two")
		m.asked(t, 2, 0)
	})
}

// What is said beside a task that a webhook or a schedule began is no part of that.
func TestNoTaskIsAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &musing{thinks: time.Second}
		r := newHarness(t, nil, m.answers)
		for _, key := range []string{"a", "b"} {
			if err := r.bridge.Submit(t.Context(), task(key, key, "task "+key)); err != nil {
				t.Fatal(err)
			}
			_ = passing(t.Context(), 100*ms)
		}
		r.lines(later(0, "1", "one"))
		r.stop()
		m.asked(t, 3, 0)
	})
}

// What was shown of an answer is not taken back.
func TestWhatHasShownSomethingIsNotAskedAnew(t *testing.T) {
	for name, tt := range map[string]struct {
		says          string
		second        line
		calls, broken int
		want          []string
	}{
		"said and not shown": {"word ", later(600*ms, "2", "two"), 2, 1, []string{"re: one + two"}},
		"shown":              {"word ", later(800*ms, "2", "two"), 2, 0, []string{"re: one", "re: two"}},
		"nothing to show":    {"", later(1900*ms, "2", "two"), 2, 1, []string{"re: one + two"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &musing{thinks: 2 * time.Second, says: tt.says}
				r, p := previewRig(t, nil)
				r.stop()
				m.answers(&r.cfg)
				r.start()
				r.lines(later(0, "1", "one"), tt.second)
				r.stop()
				r.want(t, tt.want...)
				m.asked(t, tt.calls, tt.broken)
				if tt.broken > 0 && strings.Contains(p.story(), "begin: word\n") && strings.Count(p.story(), "begin") > 1 {
					t.Errorf("shown: %s", p.story())
				}
			})
		})
	}
}

// What a call was broken off for is asked with it, also where the model has answered meanwhile.
func TestAnAnswerThatComesWithItsEndIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := make(chan *bridge.Bridge, 1)
		m := &musing{deaf: true, thinks: ms}
		once := sync.OnceFunc(func() {
			if err := (<-now).Accept(context.WithoutCancel(t.Context()), direct("2", "two")); err != nil {
				t.Error(err)
			}
		})
		m.during = func(context.Context) { once() }
		r := newHarness(t, nil, m.answers)
		now <- r.bridge
		r.lines(later(0, "1", "one"))
		r.stop()
		r.want(t, "re: one + two")
	})
}

func TestAForwardAndItsCommentAreOneQuestion(t *testing.T) {
	forward := func(at time.Duration, id, text string) line {
		l := later(at, id, "")
		l.Quoted = []chats.Quoted{{Kind: chats.RefForward, By: "Bob", Text: text}}
		return l
	}
	for name, tt := range map[string]struct {
		apart         bool
		lines         []line
		calls, broken int
		want          []string // what the answers have, in this order
	}{
		"the comment first":            {false, []line{later(0, "1", "explain"), forward(10*ms, "2", "Guten Tag")}, 2, 1, []string{"explain|Guten Tag"}},
		"the forward first":            {false, []line{forward(0, "1", "Guten Tag"), later(900*ms, "2", "explain")}, 1, 0, []string{"Guten Tag|explain"}},
		"the forward first, much else": {true, []line{forward(0, "1", "Guten Tag"), later(900*ms, "2", "explain"), later(950*ms, "3", "next")}, 2, 0, []string{"Guten Tag|explain", "next"}},
		"several with a comment":       {false, []line{later(0, "1", "explain"), forward(10*ms, "2", "Guten"), forward(20*ms, "3", "Tag")}, 2, 1, []string{"explain|Guten|Tag"}},
		"several without":              {false, []line{forward(0, "1", "Guten"), forward(10*ms, "2", "Tag")}, 1, 0, []string{"Guten|Tag"}},
		"a forward alone":              {false, []line{forward(0, "1", "Guten Tag"), later(5*time.Second, "2", "next")}, 2, 0, []string{"Guten Tag", "next"}},
		"both behind a turn":           {true, []line{later(0, "0", "wait"), later(10*ms, "1", "explain"), forward(20*ms, "2", "Guten Tag"), later(30*ms, "3", "next")}, 3, 0, []string{"wait", "explain|Guten Tag", "next"}},
		"not one from another time": {true, []line{later(0, "0", "wait"), later(10*ms, "1", "first"), func() line {
			l := forward(20*ms, "2", "Guten Tag")
			l.Time = time.Unix(1000, 0)
			return l
		}()}, 3, 0, []string{"wait", "first", "Guten Tag"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &musing{thinks: time.Second}
				r := newHarness(t, nil, m.answers, func(cfg *bridge.Config) { cfg.Turns.SeparateTurns = tt.apart })
				r.lines(tt.lines...)
				r.stop()
				got := r.platform.texts()
				if len(got) != len(tt.want) {
					t.Fatalf("there stands %q, want %q", got, tt.want)
				}
				for i, want := range tt.want {
					for part := range strings.SplitSeq(want, "|") {
						if !strings.Contains(got[i], part) {
							t.Errorf("there stands %q, want %q at %d", got, want, i)
						}
					}
				}
				m.asked(t, tt.calls, tt.broken)
			})
		})
	}
}

// More than a message holds of what is passed on is more than one question, and none of it lost.
func TestManyForwardsAreAllAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &musing{}
		r := newHarness(t, nil, m.answers, func(cfg *bridge.Config) { cfg.Turns.SeparateTurns = true })
		for n := range chats.MaxQuoted + 3 {
			f := direct(fmt.Sprint(n), "")
			f.Quoted = []chats.Quoted{{Kind: chats.RefForward, Text: fmt.Sprintf("part %02d", n)}}
			r.accept(f)
		}
		pass(t, 10)
		r.stop()
		got := r.platform.texts()
		all := strings.Join(got, "\n")
		for n := range chats.MaxQuoted + 3 {
			if strings.Count(all, fmt.Sprintf("part %02d", n)) != 1 || len(got) != 2 {
				t.Fatalf("part %d in %q", n, got)
			}
		}
	})
}

func TestACrashAtAnyStepOfAQuestionThatIsAskedAnewLosesNothing(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 10, func(t *testing.T, life *mortal) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			life.dead = make(chan struct{})
			m := &musing{thinks: time.Second}
			r := newHarness(t, nil, m.answers)
			r.stop()
			store, shown := r.cfg.Store, r.platform
			r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
			r.start()
			messages := []chats.Message{direct("1", "one"), direct("2", "two"), direct("3", "three")}
			for _, one := range messages {
				_ = r.bridge.Accept(t.Context(), one)
				_ = passing(t.Context(), 400*ms)
			}
			pass(t, 10)
			r.stop()
			if life.dies == 0 {
				m.asked(t, 3, 2)
			}
			r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
			r.start()
			r.accept(messages...)
			pass(t, 60)
			r.stop()
			inOneAnswer(t, shown.sent, "one", "two", "three")
			for e, err := range store.List(t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
				t.Errorf("still open: %s (%v)", e.Value, err)
			}
		})
	})
}

// The write that makes what was added part of a question reports an error and has happened, or
// has not.
func TestAFailedWriteAddsNothingTwice(t *testing.T) {
	t.Parallel()
	for fails := range platformtest.Steps(t, 1, 16) {
		t.Run(fmt.Sprint("step ", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &musing{thinks: time.Second}
				r := newHarness(t, nil, m.answers)
				r.stop()
				r.cfg.Store = flakyStore{Store: r.cfg.Store, flaw: &flaw{fails: fails}}
				r.start()
				for i, text := range []string{"one", "two", "three"} {
					insist(t.Context(), r.bridge, direct(fmt.Sprint(i), text))
					_ = passing(t.Context(), 400*ms)
				}
				pass(t, 120)
				r.stop()
				inOneAnswer(t, r.platform.shown(), "one", "two", "three")
			})
		})
	}
}

// Kills around what puts a comment and its forward together.
func TestACrashAtAnyStepOfACommentAndItsForwardLosesNothing(t *testing.T) {
	t.Parallel()
	forward := direct("3", "")
	forward.Quoted = []chats.Quoted{{Kind: chats.RefForward, Text: "Guten Tag"}}
	messages := []chats.Message{direct("1", "work"), direct("2", "explain"), forward}
	diesAtEachStep(t, 10, func(t *testing.T, life *mortal) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			life.dead = make(chan struct{})
			m := &musing{thinks: time.Second}
			r := newHarness(t, nil, m.answers, func(cfg *bridge.Config) { cfg.Turns.SeparateTurns = true })
			r.stop()
			store, shown := r.cfg.Store, r.platform
			r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
			r.start()
			for _, one := range messages {
				_ = r.bridge.Accept(t.Context(), one)
			}
			pass(t, 10)
			r.stop()
			r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
			r.start()
			r.accept(messages...)
			pass(t, 60)
			r.stop()
			inOneAnswer(t, shown.sent, "work", "explain")
			inOneAnswer(t, shown.sent, "work", "Guten Tag")
			if together := func(s sent) bool { return strings.Contains(s.text, "explain") && strings.Contains(s.text, "Guten Tag") }; life.dies == 0 && !slices.ContainsFunc(shown.sent, together) {
				t.Errorf("answered apart: %q", texts(shown.sent))
			}
		})
	})
}

// Lines that come to a replica which does not answer in their chat reach the question at the one
// that does.
func TestQuickLinesToAnotherReplicaAreOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &musing{thinks: time.Second}
		all := newSeveral(t, 2, nil, m.answers)
		owner, other := all.sides(t, "7")
		owner.accept(in("7", "1", "one"))
		_ = passing(t.Context(), 200*ms)
		other.accept(in("7", "2", "two"))
		_ = passing(t.Context(), 100*ms)
		owner.accept(in("7", "3", "three"))
		pass(t, 20)
		all.once(t, "re: one + two + three")
		all.stop(t)
	})
}

// The owner of a chat dies while a question is asked anew: who takes the chat over has all of it.
func TestAQuestionThatIsAskedAnewGoesOnAtAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Int64
		m := &musing{thinks: time.Second}
		m.during = func(ctx context.Context) { _ = passing(ctx, time.Duration(slow.Load())) }
		all := newSeveral(t, 2, nil, m.answers)
		owner, other := all.sides(t, "7")
		slow.Store(int64(20 * time.Second))
		owner.accept(in("7", "1", "one"))
		_ = passing(t.Context(), 200*ms)
		other.accept(in("7", "2", "two"))
		pass(t, 1)
		go owner.stop()
		slow.Store(0)
		pass(t, 60)
		all.once(t, "re: one + two")
		all.stop(t)
	})
}
