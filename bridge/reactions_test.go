package bridge_test

import (
	"context"
	"errors"
	"iter"
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
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// signing is a platform that shows signs.
type signing struct {
	*platform
	mu    sync.Mutex
	calls []string // such as +2 and -2
	shown map[string]bool
	// answer, if not nil, says what becomes of a call, and whether it takes effect.
	answer func(call string, n int) (error, bool)
	// hold, if not nil, is where a call waits for a rate limit.
	hold func()
}

func (p *signing) Acknowledge(ctx context.Context, _ chats.Chat, id string, on bool) error {
	if p.hold != nil {
		p.hold()
	}
	if err := mayBeSent(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	call := "-" + id
	if on {
		call = "+" + id
	}
	p.calls = append(p.calls, call)
	err, done := error(nil), true
	if p.answer != nil {
		err, done = p.answer(call, len(p.calls))
	}
	if done {
		p.shown[id] = on
	}
	return err
}

// seen returns the messages that bear a sign, and the calls so far.
func (p *signing) seen() (shown, calls string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for id, on := range p.shown {
		if on {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, " "), strings.Join(p.calls, " ")
}

func withSigns(p *signing) func(*bridge.Config) {
	return func(c *bridge.Config) {
		if p.platform == nil { // otherwise another replica runs with it
			p.platform, p.shown = c.Platforms[0].(*platform), map[string]bool{}
		}
		c.Platforms, c.Turns.Acknowledge = []chats.Platform{p}, true
	}
}

// slowly answers what begins with slow after so many seconds as it is long.
func slowly(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	if last := turn.History[len(turn.History)-1].Text; strings.HasPrefix(last, "slow") {
		select {
		case <-time.After(time.Duration(len(last)) * time.Second):
		case <-ctx.Done():
		}
	}
	return echo(ctx, turn)
}

func (r *harness) noSignsOnRecord() {
	r.t.Helper()
	for e, err := range r.cfg.Store.List(r.t.Context(), storage.Range{Prefix: "sign/"}) {
		r.t.Errorf("%s is left: %v", e.Key, err)
	}
}

func TestSigns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(call string, n int) (error, bool)
		// during are the messages with a sign while the first is answered, calls what was asked in all.
		during, calls string
		// act, if not nil, is done meanwhile.
		act func(r *harness)
	}{
		{name: "shown until answered", during: "2 3", calls: "+2 +3 -2 -3"},
		{name: "under flood control", during: "2 3", calls: "+2 +3 +2 +3 -2 -3", answer: func(_ string, n int) (error, bool) {
			if n <= 2 {
				return &chats.SendError{Outcome: chats.Later, RetryAfter: 2 * time.Second, Err: errors.New("busy")}, false
			}
			return nil, true
		}},
		{name: "never possible", calls: "+2 +3", answer: func(string, int) (error, bool) {
			return &chats.SendError{Outcome: chats.Refused, Err: errors.New("no such reaction")}, false
		}},
		{name: "answers lost", during: "2 3", calls: "+2 +3 -2 -3 -2 -3", answer: func(_ string, n int) (error, bool) {
			if n <= 4 {
				return &chats.SendError{Outcome: chats.Unknown, Err: errors.New("lost")}, n <= 2
			}
			return nil, true
		}},
		{name: "stopped", calls: "+2 +3 -2 -3", act: func(r *harness) { r.accept(direct("4", "/stop")) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &signing{answer: tt.answer}
				r := newHarness(t, slowly, withSigns(p))
				defer r.stop()
				r.accept(direct("0", "quick"))
				r.platform.wait(t, 1)
				r.accept(direct("1", "slow one"), direct("2", "two"), direct("3", "three"))
				pass(t, 1)
				if shown, calls := p.seen(); shown+calls != "" {
					t.Errorf("at once there are %q after %q", shown, calls)
				}
				pass(t, 4)
				if tt.act != nil {
					tt.act(r)
					synctest.Wait()
				}
				if shown, _ := p.seen(); shown != tt.during {
					t.Errorf("meanwhile there are %q, want %q", shown, tt.during)
				}
				pass(t, 60)
				shown, calls := p.seen()
				got := strings.Fields(calls)
				want := strings.Fields(tt.calls)
				slices.Sort(got) // those of different messages come in any order
				slices.Sort(want)
				if shown != "" || !slices.Equal(got, want) {
					t.Errorf("in the end there are %q after %q, want %q", shown, calls, tt.calls)
				}
				r.noSignsOnRecord()
			})
		})
	}
}

// The setting may be off when the program runs again; what was answered meanwhile is not found
// among the open jobs.
func TestSignsOfAFormerRunAreTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &signing{answer: func(call string, _ int) (error, bool) { return nil, true }}
		r := newHarness(t, slowly, withSigns(p))
		r.accept(direct("1", "slow one"), direct("2", "slow two"), direct("3", "three"))
		pass(t, 5)
		if _, err := r.cfg.Store.Put(t.Context(), "sign/fake:1/0/text", []byte("{}"), storage.Absent); err != nil {
			t.Fatal(err)
		}
		r.cfg.Turns.Acknowledge = false
		r.restart()
		synctest.Wait()
		if shown, calls := p.seen(); shown != "2 3" || calls != "+2 +3 -0" && calls != "+3 +2 -0" {
			t.Errorf("after the restart there are %q after %q", shown, calls)
		}
		pass(t, 60)
		if shown, _ := p.seen(); shown != "" {
			t.Errorf("in the end there are %q", shown)
		}
		r.noSignsOnRecord()
		r.stop()
	})
}

// Who takes a chat over takes the signs away, and nobody else does anything there.
func TestSignsAreTheOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeveral(t, 2, slowly, func(c *bridge.Config) { withSigns(&signing{})(c) })
		owner, other := s.sides(t, "1")
		signs := func(r *harness) *signing { return r.cfg.Platforms[0].(*signing) }
		other.accept(direct("1", "slow one"))
		pass(t, 1)
		other.accept(direct("2", "two"))
		pass(t, 3)
		if shown, _ := signs(owner).seen(); shown != "2" {
			t.Errorf("the owner shows %q", shown)
		}
		owner.stop()
		pass(t, 60)
		if _, calls := signs(other).seen(); calls != "-2" {
			t.Errorf("the other one asked for %q", calls)
		}
		if _, calls := signs(owner).seen(); calls != "+2" {
			t.Errorf("the owner asked for %q", calls)
		}
		other.noSignsOnRecord()
		s.stop(t)
	})
}

// The write that closes a job reports an error, and has happened: what is shown for the job is taken
// away, and its trace ends.
func TestAJobWhoseLastWriteReportedAnErrorEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, traced := &signing{}, newFollowers()
		var lost atomic.Bool
		r := newHarness(t, slowly, withSigns(p), traced.join, func(c *bridge.Config) {
			c.Store = &faulty{Store: c.Store, write: func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
				rev, err := do()
				closes := slices.ContainsFunc(ops, func(op storage.Op) bool {
					return op.Kind == storage.KindPut && op.Key == receipts.Prefix+"fake:1/2/text"
				})
				if closes && err == nil && !lost.Swap(true) {
					return 0, errFaulty
				}
				return rev, err
			}}
		})
		r.accept(direct("1", "slow one"), direct("2", "two"))
		pass(t, 5)
		if shown, _ := p.seen(); shown != "2" {
			t.Errorf("meanwhile there are %q", shown)
		}
		pass(t, 60)
		if shown, calls := p.seen(); shown != "" || !lost.Load() {
			t.Errorf("in the end there are %q after %q, an answer was lost: %v", shown, calls, lost.Load())
		}
		r.noSignsOnRecord()
		r.stop()
		traced.whole(t, false)
	})
}
