package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// readOnly is a store that takes no writes as long as it is full.
type readOnly struct {
	storage.Store
	full *atomic.Bool
}

var errFull = errors.New("no space left on device")

func (s readOnly) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	if s.full.Load() {
		return 0, errFull
	}
	return s.Store.Append(ctx, log, after, records...)
}

func (s readOnly) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if s.full.Load() {
		return 0, errFull
	}
	return s.Store.Put(ctx, key, value, rev)
}

func (s readOnly) Delete(ctx context.Context, key string, rev storage.Revision) error {
	if s.full.Load() {
		return errFull
	}
	return s.Store.Delete(ctx, key, rev)
}

func (s readOnly) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if s.full.Load() {
		return 0, errFull
	}
	return s.Store.Write(ctx, ops...)
}

// billed counts the calls of a model, and has those wait that are asked to.
type billed struct {
	agent.Model
	calls   *atomic.Int32
	reached chan struct{}
	free    chan struct{}
}

func (m billed) Complete(ctx context.Context, req agent.Request, on func(agent.Delta)) (agent.Reply, error) {
	if last := req.Messages[len(req.Messages)-1]; last.Text == "work" {
		m.calls.Add(1)
		select {
		case m.reached <- struct{}{}:
		default:
		}
		<-m.free
	}
	return m.Model.Complete(ctx, req, on)
}

// A disk that is full, or a server that takes no writes, can still be read: each question is
// paid for once, and its reply waits in memory.
func TestAReplyThatCannotBeStoredIsNotPaidForAgain(t *testing.T) {
	t.Parallel()
	const questions = 8
	for name, shared := range map[string]bool{"one process": false, "two replicas": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := billed{diligent{}, new(atomic.Int32), make(chan struct{}, 1000), make(chan struct{})}
				full := new(atomic.Bool)
				change := []func(*bridge.Config){busy(t, nothing), func(cfg *bridge.Config) {
					cfg.Turns.Agent = agent.New(agent.Config{Model: m})
					if _, wrapped := cfg.Store.(readOnly); !wrapped {
						cfg.Store = readOnly{cfg.Store, full}
					}
				}}
				var all several
				if shared {
					all = newSeveral(t, 2, nil, change...)
				} else {
					all = several{newHarness(t, nil, change...)}
				}
				for n := range questions {
					all[0].accept(in(fmt.Sprint(100+n), "0", "hello"))
				}
				pass(t, 5)
				for n := range questions {
					all[0].accept(in(fmt.Sprint(100+n), "1", "work"))
				}
				for range questions {
					<-m.reached
				}
				full.Store(true)
				close(m.free)
				pass(t, 120)
				if n := m.calls.Load(); n != questions {
					t.Errorf("the model was asked %d times for %d questions", n, questions)
				}
				full.Store(false)
				pass(t, 120)
				all.stop(t)
				answers := 0
				for _, text := range all.texts() {
					if text == "re: work" {
						answers++
					}
				}
				// Its reply asks for a tool, after which it is asked once more.
				if n := m.calls.Load(); answers != questions || n != questions && !shared {
					t.Errorf("%d answers for %d questions, for which the model was asked %d times", answers, questions, n)
				}
			})
		})
	}
}

// What a former run accepted is not asked before the store takes something.
func TestAStoreThatTakesNothingFromTheStartHasNoModelAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := billed{diligent{}, new(atomic.Int32), make(chan struct{}, 1000), make(chan struct{})}
		close(m.free)
		r := newHarness(t, nil, busy(t, nothing), func(cfg *bridge.Config) { cfg.Turns.Agent = agent.New(agent.Config{Model: m}) })
		r.accept(direct("0", "hello"))
		synctest.Wait()
		r.stop()
		record, err := json.Marshal(map[string]any{"message": direct("1", "work"), "state": "open", "fresh": true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.cfg.Store.Put(t.Context(), "job/open/fake:1/1/"+string(chats.KindText), record, storage.Absent); err != nil {
			t.Fatal(err)
		}
		store, full := r.cfg.Store, new(atomic.Bool)
		full.Store(true)
		r.cfg.Store = readOnly{store, full}
		r.start()
		pass(t, 60)
		if n := m.calls.Load(); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
		full.Store(false)
		pass(t, 120)
		r.stop()
		r.want(t, "re: hello", "re: work")
	})
}

// A recording whose words cannot be stored is not listened to again, and no other one is meanwhile.
func TestATranscriptThatCannotBeStoredIsNotPaidForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, calls := new(atomic.Bool), new(atomic.Int32)
		r := newHarness(t, echo, func(cfg *bridge.Config) {
			p, _ := cfg.Platforms[0].(*platform)
			cfg.Platforms[0], cfg.Store = hearing{p}, readOnly{cfg.Store, full}
			cfg.Turns.Transcribe = func(context.Context, toolgroups.Scope, turn.Recording) (string, error) {
				if calls.Add(1) == 1 {
					full.Store(true)
				}
				return "water the plants", nil
			}
		})
		m := direct("1", "")
		for _, ref := range []string{"a", "b"} {
			m.Files = append(m.Files, chats.Attachment{Ref: ref, Name: ref + ".ogg", Size: 5, Sound: chats.Sound{Kind: chats.SoundSpoken}})
		}
		r.accept(m)
		pass(t, 120)
		if n := calls.Load(); n != 1 {
			t.Errorf("while nothing could be stored %d recordings were listened to", n)
		}
		if got := r.platform.texts(); len(got) > 0 {
			t.Errorf("shown before it was stored: %q", got)
		}
		full.Store(false)
		pass(t, 120)
		r.stop()
		got := r.platform.texts()
		if n := calls.Load(); n != 2 || len(got) != 3 || strings.Count(strings.Join(got, "\n"), "water the plants") != 4 {
			t.Errorf("two recordings were listened to %d times, and there stands %q", n, got)
		}
	})
}

// A conversation that waits for its summary while another chat is answered has no model asked for it
// when the store takes no writes any more.
func TestNothingIsSummedUpWhileNothingCanBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due, control := 0, &scribe{}
		for r, _ := newLong(t, control); control.summaries() == 0; due++ {
			r.tell(due, due+1)
			pass(t, 1)
		}
		full, s := new(atomic.Bool), &scribe{}
		asked, letGo := make(chan string), make(chan struct{})
		s.reading = func(req agent.Request) (agent.Reply, error) {
			last := req.Messages[len(req.Messages)-1].Text
			if len(req.Messages) > 3 && strings.Contains(last, fmt.Sprintf("#%d#", due-1)) || strings.Contains(last, "#77#") {
				asked <- last
				<-letGo
			}
			return agent.Reply{}, nil
		}
		r, _ := newLong(t, s, func(cfg *bridge.Config) { cfg.Store, cfg.Limits.MaxTurns = readOnly{cfg.Store, full}, 1 })
		r.tell(0, due-1)
		r.accept(direct("due", question(due-1)))
		<-asked
		r.accept(in("other", "1", "#77#")) // has the only turn when the conversation is to be summed up
		letGo <- struct{}{}
		<-asked
		pass(t, 5)
		full.Store(true)
		letGo <- struct{}{}
		pass(t, 60)
		if n := s.summaries(); n != 0 {
			t.Errorf("%d summaries were asked for while none could be stored", n)
		}
		full.Store(false)
		pass(t, 60)
		r.accept(direct("next", question(due)))
		pass(t, 10)
		r.stop()
		if got := r.platform.texts(); s.summaries() == 0 || len(got) != due+2 {
			t.Errorf("%d summaries after %d answers: %q", s.summaries(), len(got), got)
		}
	})
}
