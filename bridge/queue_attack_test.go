package bridge_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// edit is a new text for a message.
func edit(m chats.Message, text string) chats.Message {
	m.Kind, m.Text = chats.KindEdit, text
	return m
}

// gatedStore has writes and reads wait where a test says so.
type gatedStore struct {
	storage.Store
	put func(key string, value []byte)
	get func(key string)
	// write is called with the first key.
	write func(key string)
}

func (s gatedStore) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if s.write != nil {
		s.write(ops[0].Key)
	}
	return s.Store.Write(ctx, ops...)
}

func (s gatedStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if s.put != nil {
		s.put(key, value)
	}
	return s.Store.Put(ctx, key, value, rev)
}

func (s gatedStore) Get(ctx context.Context, key string) (storage.Entry, error) {
	if s.get != nil {
		s.get(key)
	}
	return s.Store.Get(ctx, key)
}

// TestAnEditRacesWithNobody edits a message all the time while the turn before it
// begins to wait for an approval, which looks at the message. It proves something under
// the race detector alone: the look waits for the next edit without telling it.
//
// Edits race with nobody.
func TestAnEditRacesWithNobody(t *testing.T) {
	w := &execTools{}
	edits, ended := make(chan struct{}), make(chan struct{})
	r := w.guarded(t, func(c *bridge.Config) {
		c.Turns.SeparateTurns = true // the message waits
		c.Store = gatedStore{
			Store: c.Store,
			put: func(_ string, value []byte) {
				if strings.Contains(string(value), `"text":"edited"`) {
					select {
					case edits <- struct{}{}:
					default:
					}
				}
			},
			get: func(key string) {
				if strings.HasPrefix(key, "job/open/fake:1/") && strings.HasSuffix(key, "/card") {
					select {
					case <-edits:
					case <-ended:
					}
				}
			},
		}
	})
	stop := make(chan struct{})
	r.accept(direct("1", "run a"), direct("2", "next"))
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				r.accept(edit(direct("2", ""), "edited"))
			}
		}
	}()
	all := r.platform.wait(t, 2)
	close(stop)
	<-ended
	if !strings.Contains(all[1].text, "Your message comes next") {
		t.Fatalf("told %q", texts(all))
	}
	r.accept(pressOn(all[0], "p", "1", all[0].button(t, "Allow once")))
	if all = r.platform.wait(t, 4); all[3].text != "re: edited" {
		t.Errorf("answers: %q", texts(all))
	}
}

// TestAnEditHoldsNothingUp has the disk wait in the middle of an edit.
//
// Edits race with nobody.
func TestAnEditHoldsNothingUp(t *testing.T) {
	s := newSlow()
	writing, written := make(chan struct{}), make(chan struct{})
	wait := sync.OnceFunc(func() {
		close(writing)
		<-written
	})
	r := newHarness(t, s.think, func(c *bridge.Config) {
		c.Store = gatedStore{Store: c.Store, put: func(_ string, value []byte) {
			if strings.Contains(string(value), `"text":"right"`) && strings.Contains(string(value), `"state":"open"`) {
				wait()
			}
		}}
	})
	release := sync.OnceFunc(func() { close(written) })
	t.Cleanup(release)
	r.accept(direct("1", "slow one"), direct("2", "two"), direct("3", "slow three"), direct("4", "wrong"))
	<-s.asked
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		r.accept(edit(direct("4", ""), "right"))
	}()
	<-writing
	s.free <- struct{}{}
	if got := texts(r.platform.wait(t, 2)); got[1] != "re: two" {
		t.Errorf("answers: %q", got)
	}
	<-s.asked
	release()
	<-accepted
	close(s.free)
	if got := texts(r.platform.wait(t, 4)); got[3] != "re: right" {
		t.Errorf("answers: %q", got)
	}
}

// putOff has the platform put off every text with a beginning, for an hour, until it is
// let through, and says so each time.
type putOff struct {
	*platform
	beginning string
	tried     chan struct{}
	through   atomic.Bool
}

func (p *putOff) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	if !p.through.Load() && strings.HasPrefix(part.Text, p.beginning) {
		select {
		case p.tried <- struct{}{}:
		default:
		}
		return "", &chats.SendError{Outcome: chats.Later, RetryAfter: time.Hour, Err: errors.New("too many requests")}
	}
	return p.platform.Send(ctx, to, part)
}

const helpBegins = "Write to me as you would to a person"

// hanging asks nobody and answers nothing until its turn is ended, which it says.
type hanging struct{ begun, ended chan struct{} }

func newHanging() *hanging { return &hanging{make(chan struct{}, 100), make(chan struct{}, 100)} }

func (h *hanging) think(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	if !strings.HasPrefix(turn.History[len(turn.History)-1].Text, "hang") {
		return echo(ctx, turn)
	}
	return func(yield func(agent.Message, error) bool) {
		h.begun <- struct{}{}
		<-ctx.Done()
		h.ended <- struct{}{}
		yield(agent.Message{}, context.Cause(ctx))
	}
}

// TestStopWaitsForNoOtherReply stops a turn while the reply to a command before
// the /stop is put off for an hour.
//
// /stop waits for no other reply.
func TestStopWaitsForNoOtherReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // after a second the /stop would end the other reply, too
		h := newHanging()
		r := newHarness(t, h.think)
		r.stop()
		p := &putOff{platform: r.platform, beginning: helpBegins, tried: make(chan struct{}, 1)}
		r.cfg.Platforms = []chats.Platform{p}
		r.start()
		r.accept(direct("1", "hang"), direct("2", "dropped"))
		<-h.begun
		r.accept(direct("3", "/help"))
		<-p.tried
		r.accept(direct("4", "/stop"))
		within(t, h.ended, "end of the turn")
		synctest.Wait()
		if all := r.stored("job/done/"); len(all) != 2 || all[0].State != receipts.Stopped || all[1].State != receipts.Stopped {
			t.Fatalf("the store has %v", all)
		}
		// The program is killed before the reply is there. It comes when it can.
		r.stop()
		p.through.Store(true)
		r.start()
		r.accept(direct("5", "last"))
		got := r.platform.wait(t, 3)
		if !strings.HasPrefix(got[0].text, helpBegins) || !strings.HasPrefix(got[1].text, "Stopped.") || got[2].text != "re: last" || len(h.begun) > 0 {
			t.Errorf("answers: %q, turns begun again: %d", texts(got), len(h.begun))
		}
	})
}

// within waits for something that has to happen.
func within[T any](t *testing.T, happens <-chan T, what string) (v T) {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case v = <-happens:
	case <-timeout.C:
		t.Fatalf("no %s", what)
	}
	return v
}

// TestAnAcceptedStopOutlivesAnyKill kills the program at each step of a /stop
// that is accepted while the reply to another command is put off.
//
// /stop waits for no other reply.
func TestAnAcceptedStopOutlivesAnyKill(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 12, func(t *testing.T, life *mortal) {
		synctest.Test(t, func(t *testing.T) {
			life.dead = make(chan struct{})
			h := newHanging()
			r := newHarness(t, h.think)
			r.stop()
			p := &putOff{platform: r.platform, beginning: helpBegins, tried: make(chan struct{}, 1)}
			store := r.cfg.Store
			r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{p}
			r.start()
			messages := []chats.Message{direct("1", "hang"), direct("2", "/help"), direct("3", "/stop")}
			stopped := false
			for i, happens := range []chan struct{}{h.begun, p.tried, h.ended} {
				stopped = r.bridge.Accept(t.Context(), messages[i]) == nil && i == 2
				select {
				case <-happens:
				case <-life.dead:
				}
			}
			if life.dies == 0 {
				synctest.Wait()
				if all := r.stored("job/done/"); len(all) != 1 {
					t.Fatalf("the store has %v", all)
				}
			}
			r.stop()
			for len(h.begun) > 0 {
				<-h.begun
			}
			p.through.Store(true)
			r.cfg.Store = store
			r.start()
			r.accept(messages...) // the platform gives again what was not accepted
			waitAnswered(t, r.platform, helpBegins, "Stopped.")
			r.accept(direct("4", "last"))
			waitAnswered(t, r.platform, "re: last")
			if stopped && len(h.begun) > 0 {
				t.Error("a turn that was stopped has begun again")
			}
		})
	})
}

// An edit is written while its message waits, and that begins to be answered before the write
// returns.
func TestAnEditThatIsWrittenAsItsTurnBeginsReachesTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached, letGo := make(chan struct{}, 10), make(chan struct{}, 10)
		r := newHarness(t, nil, busy(t, waiting(reached, letGo)), func(cfg *bridge.Config) {
			cfg.Store = &afterPut{Store: cfg.Store, done: func(value []byte) {
				if strings.Contains(string(value), `"text":"work better"`) {
					letGo <- struct{}{}
					<-reached
				}
			}}
		})
		r.accept(group("1", "1", "work"))
		<-reached
		r.accept(group("2", "2", "work well"), edit(group("2", "2", "work well"), "work better"))
		letGo <- struct{}{}
		synctest.Wait()
		r.stop()
		r.want(t, "re: work", "re: work well + [I have edited my message from before. It now reads:]\nwork better")
	})
}

// The same where its turn waits for the first reply of the model: nothing is written with the former
// text then, and the new one is on disk.
func TestAnEditThatIsWrittenAsTheModelIsAskedReachesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := billed{diligent{}, new(atomic.Int32), make(chan struct{}, 10), make(chan struct{}, 10)}
		r := newHarness(t, nil, busy(t, nothing), func(cfg *bridge.Config) {
			cfg.Turns.Agent = agent.New(agent.Config{Model: m})
			cfg.Store = &afterPut{Store: cfg.Store, done: func(value []byte) {
				if strings.Contains(string(value), `"text":"work better"`) {
					m.free <- struct{}{}
					<-m.reached
				}
			}}
		})
		r.accept(group("1", "1", "work"))
		<-m.reached
		r.accept(group("2", "2", "work"), edit(group("2", "2", "work"), "work better"))
		m.free <- struct{}{}
		pass(t, 10)
		r.stop()
		r.want(t, "re: work", "re: work + [I have edited my message from before. It now reads:]\nwork better")
	})
}

// afterPut does something when a value has been put, before the caller knows.
type afterPut struct {
	storage.Store
	done func(value []byte)
}

func (s *afterPut) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	rev, err := s.Store.Put(ctx, key, value, rev)
	s.done(value)
	return rev, err
}

// The platform gives an edit again that was part of an answer: nobody has changed anything.
func TestAnEditThatWasAnsweredAndComesAgainSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reached, letGo := working(t)
		one := direct("1", "work")
		at := func(text string, second int64) chats.Message {
			m := edit(one, text)
			m.Time = time.Unix(second, 0)
			return m
		}
		r.accept(one)
		<-reached
		r.accept(at("work well", 1), at("work best", 2))
		letGo <- struct{}{}
		synctest.Wait()
		r.restart()
		r.accept(one, at("work well", 1), at("work best", 2))
		synctest.Wait()
		note := " + [I have edited my message from before. It now reads:]\n"
		r.want(t, "re: work"+note+"work well"+note+"work best")
		r.accept(at("work well", 3))
		synctest.Wait()
		r.stop()
		if got := r.platform.texts(); len(got) != 2 || !strings.Contains(got[1], "already answered") {
			t.Errorf("a new edit was told %q", got)
		}
	})
}

// A kill between the write of a /stop and its effect changes nothing of what that says.
func TestAStopThatAKillCutOffSaysWhatItDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		r := newHarness(t, s.think)
		r.accept(direct("1", "slow"), direct("2", "two"), direct("3", "three"))
		<-s.asked
		r.stop()
		stop := queue.Run{Job: queue.Job{Message: direct("4", "/stop"), Kind: "stop", State: receipts.Open, Unstarted: true}}
		op, err := stop.Record()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.cfg.Store.Write(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.accept(direct("5", "after"))
		synctest.Wait()
		r.stop()
		r.want(t, "Stopped. 3 waiting messages were dropped.", "re: after")
	})
}
