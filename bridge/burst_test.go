package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
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
	"oneclaw/toolgroups"
)

// diligent is a model that looks once, where it is asked to work, and then answers all that
// its turn was told.
type diligent struct{}

func (diligent) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	var said []string
	looked := false
	for _, m := range req.Messages {
		switch {
		case m.BeginsTurn():
			said, looked = []string{m.Text}, false
		case m.Role == agent.RoleUser:
			said = append(said, m.Text)
		case m.Role == agent.RoleTool:
			looked = true
		}
	}
	if strings.HasPrefix(said[0], "work") && !looked {
		return agent.Reply{Calls: []agent.Call{{ID: "0", Name: "get_current_time", Arguments: "{}"}}}, nil
	}
	return agent.Reply{Text: "re: " + strings.Join(said, " + ")}, nil
}

// busy has a bridge answer with a diligent model; look is what its tool does.
func busy(t *testing.T, look func(ctx context.Context)) func(*bridge.Config) {
	t.Helper()
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "get_current_time", Description: "Look.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
			look(ctx)
			return toolgroups.Result{Text: "looked"}, context.Cause(ctx)
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return func(cfg *bridge.Config) {
		cfg.Turns.Agent = agent.New(agent.Config{Model: diligent{}})
		cfg.Turns.Tools = func() *toolgroups.Registry { return reg }
	}
}

// working is a rig of which a turn waits in its tool until it is let go.
func working(t *testing.T) (r *harness, reached, letGo chan struct{}) {
	t.Helper()
	reached, letGo = make(chan struct{}, 10), make(chan struct{}, 10)
	r = newHarness(t, nil, busy(t, waiting(reached, letGo)))
	return r, reached, letGo
}

func waiting(reached chan<- struct{}, letGo <-chan struct{}) func(context.Context) {
	return func(ctx context.Context) {
		reached <- struct{}{}
		select {
		case <-letGo:
		case <-ctx.Done():
		}
	}
}

func nothing(context.Context) {}

func piece(m chats.Message, album string) chats.Message {
	m.Group = album
	return m
}

// want checks what was sent.
func (r *harness) want(t *testing.T, want ...string) {
	t.Helper()
	if got := r.platform.texts(); !slices.Equal(got, want) {
		t.Errorf("there stands %q, want %q", got, want)
	}
}

func TestWhatIsWrittenWhileATurnRunsIsAnsweredByIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reached, letGo := working(t)
		r.accept(direct("1", "work"))
		<-reached
		r.accept(direct("2", "two"), direct("3", "three"))
		letGo <- struct{}{}
		synctest.Wait()
		r.accept(direct("4", "four"))
		synctest.Wait()
		r.accept(direct("6", "work on"))
		<-reached
		r.accept(direct("7", "seven"), direct("8", "/status"), direct("9", "/why"))
		synctest.Wait()
		letGo <- struct{}{}
		synctest.Wait()
		r.accept(direct("10", "/why"))
		synctest.Wait()
		r.stop()
		got := r.platform.texts()
		for i, want := range map[int]string{
			0: "re: work + two + three", 1: "re: four", 2: "1 more message waits", 3: "It waits for its turn", 4: "re: work on + seven",
			5: "“seven” came while I worked on “work on”, and is answered with that",
		} {
			if len(got) != 6 || !strings.Contains(got[i], want) {
				t.Errorf("there stands %q, want %q at %d", got, want, i)
			}
		}
		if !strings.Contains(got[5], "Added while I worked on it: 1 message") {
			t.Errorf("/why says %q", got[5])
		}
	})
}

func TestStatusNamesWhatBecamePartOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached, letGo := make(chan struct{}, 10), make(chan struct{}, 10)
		s := newSlow()
		r := newHarness(t, nil, busy(t, waiting(reached, letGo)), func(cfg *bridge.Config) {
			cfg.Turns.Agent = agent.New(agent.Config{Model: patient{s}})
		})
		r.accept(direct("1", "work"))
		<-reached
		r.accept(direct("2", "two"))
		letGo <- struct{}{}
		<-s.asked
		r.accept(direct("3", "/status"))
		synctest.Wait()
		if got := r.platform.texts(); len(got) != 1 || !strings.Contains(got[0], "I am working on an answer. It also answers 1 more message.") {
			t.Errorf("/status says %q", got)
		}
		r.accept(direct("4", "/stop"), direct("5", "after"))
		synctest.Wait()
		close(s.free)
		synctest.Wait()
		if got := r.platform.texts(); len(got) != 3 || got[1] != "Stopped. I stopped what I was doing." && got[1] != "Stopped." || got[2] != "re: after" {
			t.Errorf("after /stop there stands %q", got)
		}
		r.stop()
	})
}

// patient is a diligent model that waits before it answers what it has looked at.
type patient struct{ s *slow }

func (p patient) Complete(ctx context.Context, req agent.Request, on func(agent.Delta)) (agent.Reply, error) {
	reply, err := diligent{}.Complete(ctx, req, on)
	if strings.Contains(reply.Text, " + ") {
		p.s.asked <- reply.Text
		select {
		case <-p.s.free:
		case <-ctx.Done():
			return agent.Reply{}, context.Cause(ctx)
		}
	}
	return reply, err
}

// A turn runs its tools on behalf of whoever asked for it: nobody else can tell it more.
func TestNobodyElseSteersATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reached, letGo := working(t)
		r.accept(group("1", "1", "work"))
		<-reached
		r.accept(group("2", "1", "mine"), group("3", "2", "another's"), group("4", "1", "mine again"))
		letGo <- struct{}{}
		synctest.Wait()
		r.stop()
		r.want(t, "re: work + mine", "re: another's", "re: mine again")
	})
}

// What comes behind a /clear is of the next conversation.
func TestWhatFollowsACommandDoesNotSteer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reached, letGo := working(t)
		r.accept(direct("1", "work"))
		<-reached
		r.accept(direct("2", "two"), direct("3", "/clear"), direct("4", "four"))
		synctest.Wait()
		letGo <- struct{}{}
		synctest.Wait()
		r.stop()
		if got := r.platform.texts(); len(got) != 2 || !strings.Contains(got[0], "cleared") || got[1] != "re: four" {
			t.Errorf("there stands %q", got)
		}
	})
}

func TestEditsOfWhatIsBeingAnsweredReachIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reached, letGo := working(t)
		one := direct("1", "work")
		r.accept(one)
		<-reached
		r.accept(direct("2", "two"), edit(direct("2", "two"), "two, changed"), edit(one, "work well"), edit(one, "work well"), edit(one, "work"))
		letGo <- struct{}{}
		synctest.Wait()
		r.accept(edit(one, "work better"), edit(one, "work best"), edit(direct("2", ""), "two, changed"), edit(direct("9", ""), "nothing to me"))
		synctest.Wait()
		r.stop()
		note := "[I have edited my message from before. It now reads:]\n"
		r.want(t, "re: work + two, changed + "+note+"work well + "+note+"work",
			"You changed a message that I have already answered. If you want a new answer, please send it again as a new message.")
	})
}

// A code that lets somebody claim the bot is not for the model, in an edit either.
func TestAnEditOfWhatIsBeingAnsweredBringsNoCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reached, letGo := working(t)
		one := direct("1", "work")
		r.accept(one)
		<-reached
		r.accept(edit(one, "claim "+strings.Repeat("a", 26)))
		letGo <- struct{}{}
		synctest.Wait()
		r.stop()
		r.want(t, "re: work")
	})
}

func TestAnEditOfWhatEndsBeforeIsAnsweredWithALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		r := newHarness(t, s.think)
		r.accept(direct("1", "slow"))
		<-s.asked
		r.accept(edit(direct("1", ""), "slower"))
		s.free <- struct{}{}
		synctest.Wait()
		r.stop()
		if got := r.platform.texts(); len(got) != 2 || got[0] != "re: slow" || !strings.Contains(got[1], "already answered") {
			t.Errorf("there stands %q", got)
		}
	})
}

func TestAnEditOfWhatWasStoppedIsNotCalledAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		r := newHarness(t, s.think)
		r.accept(direct("1", "slow one"), direct("2", "two"))
		<-s.asked
		r.accept(direct("3", "/stop"))
		pass(t, 1)
		r.accept(edit(direct("2", ""), "two, changed"))
		pass(t, 1)
		r.stop()
		r.want(t, "Stopped. One waiting message was dropped.",
			"You changed a message that I did not answer. If you want an answer, please send it again as a new message.")
	})
}

// A message has an answer if one part of it stands there. The line about a failure is none, nor is the notice
// about an answer that was given up.
func TestAnEditIsToldWhetherItsMessageHasAnAnswer(t *testing.T) {
	failing := func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			yield(agent.Message{}, &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("x")})
		}
	}
	refused := &chats.SendError{Outcome: chats.Refused, Err: errors.New("x")}
	for name, tt := range map[string]struct {
		think    thinker
		fail     func(n int, arrived bool) error
		answered bool
	}{
		"answered":                  {answering("one"), nil, true},
		"failed":                    {failing, nil, false},
		"over the budget":           {broke, nil, false},
		"one of two parts refused":  {answering("one\ftwo"), outcomes(map[int]*chats.SendError{1: refused}), true},
		"the only part was refused": {answering("one"), outcomes(map[int]*chats.SendError{1: refused}), false},
		"given up":                  {answering("one\ftwo"), outForADay(0), false},
		"given up after one part":   {answering("one\ftwo"), outForADay(1), true},
	} {
		for _, when := range []string{"later", "meanwhile"} {
			if when == "meanwhile" && tt.fail != nil {
				continue // the edit is looked at before the platform's refusal is on disk
			}
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began, end := make(chan struct{}, 1), make(chan struct{})
					r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
						began <- struct{}{}
						<-end
						return tt.think(ctx, turn)
					}, asking)
					r.platform.fail = tt.fail
					r.accept(direct("1", "x"))
					<-began
					if when == "meanwhile" {
						r.accept(edit(direct("1", ""), "y"))
						synctest.Wait()
					}
					close(end)
					synctest.Wait()
					pass(t, 28*3600)
					if when == "later" {
						r.accept(edit(direct("1", ""), "y"))
						synctest.Wait()
					}
					r.stop()
					all := r.platform.texts()
					if told := all[len(all)-1]; strings.Contains(told, "already answered") != tt.answered || strings.Contains(told, "did not answer") == tt.answered {
						t.Errorf("there stands %q", all)
					}
				})
			})
		}
	}
}

// outForADay has a platform take so many messages, and the others a day later.
func outForADay(takes int) func(int, bool) error {
	var until time.Time
	return func(n int, _ bool) error {
		if n > takes && until.IsZero() {
			until = time.Now().Add(25 * time.Hour)
		}
		if n <= takes || time.Now().After(until) {
			return nil
		}
		return &chats.SendError{Outcome: chats.Unknown, Err: errCut}
	}
}

func TestPiecesAreOneMessage(t *testing.T) {
	long := func(m chats.Message, cut chats.Cut) chats.Message { m.Cut = cut; return m }
	apart := func(m chats.Message, d time.Duration) chats.Message { m.Time = time.Unix(1000, 0).Add(d); return m }
	for name, tt := range map[string]struct {
		messages []chats.Message
		at       time.Duration // when the first is answered
		want     []string
	}{
		"an album": {
			[]chats.Message{piece(direct("1", "caption"), "a"), piece(direct("2", ""), "a"), piece(direct("3", "c"), "a")},
			time.Second,
			[]string{"re: caption\nc"},
		},
		"an album and what the same person says next": {
			[]chats.Message{piece(direct("1", "a"), "a"), piece(direct("2", "b"), "a"), direct("3", "c")}, 0, []string{"re: a\nb", "re: c"},
		},
		"two albums": {
			[]chats.Message{piece(direct("1", "a"), "a"), piece(direct("2", "b"), "b"), piece(direct("3", "c"), "b")}, 0, []string{"re: a", "re: b\nc"},
		},
		"another person ends it": {
			[]chats.Message{piece(group("1", "1", "a"), "a"), group("2", "2", "b")}, 0, []string{"re: a", "re: b"},
		},
		"a text in pieces": {
			[]chats.Message{long(direct("1", "a"), chats.CutBetween), long(direct("2", "b"), chats.CutWithin), direct("3", "c")}, 0, []string{"re: a\nbc"},
		},
		"the rest of a text is no command":    {[]chats.Message{long(direct("1", "a"), chats.CutBetween), direct("2", "/clear")}, 0, []string{"re: a\n/clear"}},
		"nor does it stop what runs":          {[]chats.Message{long(direct("1", "a"), chats.CutBetween), direct("2", "stop")}, 0, []string{"re: a\nstop"}},
		"a command a while after a long text": {[]chats.Message{apart(long(direct("1", "a"), chats.CutBetween), 0), apart(direct("2", "/no"), time.Minute)}, 0, []string{"There is no /no. /help lists the commands.", "re: a"}},
		"a text that only is long":            {[]chats.Message{long(direct("1", "a"), chats.CutBetween)}, time.Second, []string{"re: a"}},
		"plain messages":                      {[]chats.Message{direct("1", "a"), direct("2", "b")}, 0, []string{"re: a", "re: b"}},
		"a long text, and much later another": {
			[]chats.Message{apart(long(direct("1", "a"), chats.CutBetween), 0), apart(direct("2", "b"), time.Minute)}, 0, []string{"re: a", "re: b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, nil, busy(t, nothing), func(cfg *bridge.Config) { cfg.Now = func() time.Time { return time.Unix(1060, 0) } })
				synctest.Wait()
				began := time.Now()
				for _, m := range tt.messages {
					r.accept(m)
					synctest.Wait()
				}
				r.platform.wait(t, 1)
				if took := time.Since(began); took != tt.at {
					t.Errorf("the first was answered after %s", took)
				}
				pass(t, 5)
				r.stop()
				r.want(t, tt.want...)
			})
		})
	}
}

// While a process is paused its clock goes on, and nothing is read of what comes.
func TestAnAlbumIsOneQuestionAlthoughTheProcessWasPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		r := newHarness(t, nil, busy(t, nothing), func(cfg *bridge.Config) { cfg.Now = c.Now })
		r.accept(piece(direct("1", "a"), "g"))
		_ = passing(t.Context(), 600*time.Millisecond)
		c.advance(10 * time.Second)
		_ = passing(t.Context(), 700*time.Millisecond)
		r.accept(piece(direct("2", "b"), "g"))
		pass(t, 5)
		r.stop()
		r.want(t, "re: a\nb")
	})
}

func TestStopEndsAllPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, nil, busy(t, nothing))
		r.accept(piece(direct("1", "a"), "a"), piece(direct("2", "b"), "a"), direct("3", "/stop"), direct("4", "after"))
		pass(t, 5)
		r.stop()
		r.want(t, "Stopped. One waiting message was dropped.", "re: after")
	})
}

// An edit of a piece of an album that its platform gives again, or that changes nothing of what the piece
// says, is answered by nothing, whichever piece that is.
func TestAnEditOfAPieceThatChangesNothingSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reached, letGo := working(t)
		one, two := piece(direct("1", "work"), "album"), piece(direct("2", "two"), "album")
		r.accept(one, edit(one, "work well"), two)
		<-reached
		r.accept(edit(one, "work well"), edit(two, "two"))
		letGo <- struct{}{}
		pass(t, 5)
		r.restart()
		r.accept(one, edit(one, "work well"), two, edit(two, "two"))
		pass(t, 5)
		r.want(t, "re: work well\ntwo")
		r.accept(edit(one, "work"))
		pass(t, 5)
		r.stop()
		if got := r.platform.texts(); len(got) != 2 || !strings.Contains(got[1], "already answered") {
			t.Errorf("an edit that shortens the first piece was told %q", got)
		}
	})
}

func TestPiecesAreEditedAndExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, nil, busy(t, nothing))
		r.accept(piece(direct("1", "a"), "a"), piece(direct("2", "b"), "a"), edit(direct("2", "b"), "b, changed"))
		pass(t, 5)
		r.accept(direct("3", "/why"))
		synctest.Wait()
		r.stop()
		if got := r.platform.texts(); len(got) != 2 || got[0] != "re: a\nb, changed" || !strings.Contains(got[1], "It came in 2 pieces") {
			t.Errorf("there stands %q", got)
		}
	})
}

// killedEverywhere kills a bridge at every step of what it does with messages, some of which
// come while its tool runs, and goes on with a new one to which the platform delivers all of
// them again. What was shown is given to check.
func killedEverywhere(t *testing.T, least int, messages, meanwhile []chats.Message, check func(t *testing.T, shown []sent)) {
	t.Helper()
	diesAtEachStep(t, least, func(t *testing.T, life *mortal) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			life.dead = make(chan struct{})
			var first atomic.Pointer[bridge.Bridge]
			r := newHarness(t, nil, busy(t, func(ctx context.Context) {
				if b := first.Load(); b != nil {
					_ = b.Accept(ctx, meanwhile...) // a dead one takes nothing
				}
			}))
			r.stop()
			store, shown := r.cfg.Store, r.platform
			r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
			r.start()
			first.Store(r.bridge)
			for _, m := range messages {
				_ = r.bridge.Accept(t.Context(), m)
			}
			pass(t, 10)
			r.stop()
			first.Store(nil)
			r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
			r.start()
			r.accept(append(messages, meanwhile...)...)
			pass(t, 60)
			r.stop()
			check(t, shown.sent)
			for e, err := range store.List(t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
				t.Errorf("still open: %s (%v)", e.Value, err)
			}
		})
	})
}

// inOneAnswer checks that each message is in the input of exactly one answer, and that no
// answer stands there twice unmarked.
func inOneAnswer(t *testing.T, shown []sent, messages ...string) {
	t.Helper()
	var answers []string
	unmarked := make(map[string]int)
	for _, s := range shown {
		if !slices.Contains(answers, s.text) {
			answers = append(answers, s.text)
		}
		if !s.repeat {
			unmarked[s.text]++
		}
		if unmarked[s.text] > 1 {
			t.Errorf("%q stands there twice", s.text)
		}
	}
	for _, m := range messages {
		n := 0
		for _, a := range answers {
			n += strings.Count(a, m)
		}
		if n != 1 {
			t.Errorf("%q is in %d answers: %q", m, n, answers)
		}
	}
	if all := strings.Join(answers, " "); !slices.IsSortedFunc(messages, func(a, b string) int { return strings.Index(all, a) - strings.Index(all, b) }) {
		t.Errorf("answered in another order: %q", answers)
	}
}

func TestACrashAtAnyStepOfASteeredTurnLosesNothing(t *testing.T) {
	t.Parallel()
	killedEverywhere(t, 10, []chats.Message{direct("1", "work")}, []chats.Message{direct("2", "two"), direct("3", "three")}, func(t *testing.T, shown []sent) {
		t.Helper()
		inOneAnswer(t, shown, "work", "two", "three")
	})
}

func TestACrashAtAnyStepOfAnAlbumLosesNothing(t *testing.T) {
	t.Parallel()
	album := []chats.Message{piece(direct("1", "a"), "g"), piece(direct("2", "b"), "g"), piece(direct("3", "c"), "g")}
	killedEverywhere(t, 10, album, nil, func(t *testing.T, shown []sent) {
		t.Helper()
		inOneAnswer(t, shown, "re: a\nb\nc")
	})
}

// insist gives messages until they are taken, as a platform does: soon enough for a piece to be
// there before its album is no longer waited for.
func insist(ctx context.Context, b *bridge.Bridge, messages ...chats.Message) {
	for b.Accept(ctx, messages...) != nil {
		_ = halfSecond(ctx)
	}
}

// A write that puts things together reports an error and has happened, or has not.
func TestAFailedWriteJoinsNothingTwice(t *testing.T) {
	t.Parallel()
	for fails := range platformtest.Steps(t, 1, 16) {
		t.Run(fmt.Sprint("step ", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now atomic.Pointer[bridge.Bridge]
				r := newHarness(t, nil, busy(t, func(ctx context.Context) {
					insist(ctx, now.Load(), direct("3", "three"), direct("4", "four"))
				}))
				r.stop()
				r.cfg.Store = flakyStore{Store: r.cfg.Store, flaw: &flaw{fails: fails}}
				r.start()
				now.Store(r.bridge)
				insist(t.Context(), r.bridge, piece(direct("1", "work one"), "g"))
				insist(t.Context(), r.bridge, piece(direct("2", "two"), "g"))
				pass(t, 120)
				r.stop()
				inOneAnswer(t, r.platform.shown(), "one", "two", "three", "four")
			})
		})
	}
}

// The chat changes its owner in the middle of an album, and in the middle of a turn that was
// told more.
func TestWhatBelongsTogetherStaysSoAtAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached, letGo := make(chan struct{}, 10), make(chan struct{})
		all := newSeveral(t, 3, nil, busy(t, waiting(reached, letGo)))
		owner, other := all.sides(t, "7")
		owner.accept(in("7", "1", "work"))
		<-reached
		other.accept(in("7", "2", "two"), in("7", "3", "three"))
		pass(t, 1)
		go owner.stop()
		pass(t, 20)
		<-reached
		other.accept(in("7", "4", "four"))
		pass(t, 1)
		close(letGo)
		pass(t, 10)
		all.once(t, "re: work + two + three + four")
		rest := slices.DeleteFunc(slices.Clone(all), func(r *harness) bool { return r == owner })
		for i, r := range rest {
			r.accept(piece(in("7", fmt.Sprint("a", i), fmt.Sprint("piece ", i)), "g"))
		}
		pass(t, 10)
		all.once(t, "re: piece 0\npiece 1")
		all.stop(t)
	})
}
