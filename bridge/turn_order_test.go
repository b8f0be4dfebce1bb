package bridge_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
)

// soon returns what comes on a channel within a minute by the clock of a bubble.
func soon[T any](t *testing.T, ch <-chan T) (got T) {
	t.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case got = <-ch:
	case <-timer.C:
		t.Fatal("nothing comes")
	}
	return got
}

// Where all turns are taken, the chats get theirs in the order in which their messages were
// accepted, whichever of them came first to wait for one.
func TestChatsGetTheirTurnsInTheOrderOfAcceptance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		r := newHarness(t, s.think, func(cfg *bridge.Config) { cfg.Limits.MaxTurns = 1 })
		// Behind the turn that runs wait two messages of its own chat, which stand in line only when
		// it is over; the others stand there already.
		r.accept(in("a", "1", "slow a1"))
		soon(t, s.asked)
		for _, text := range []string{"slow a2", "slow c1", "slow d1", "slow a3", "slow e1"} {
			m := in(text[5:6], text[5:], text)
			m.User, m.Direct = m.ID, false // each is a question of its own
			r.accept(m)
		}
		var order []string
		for range 5 {
			s.free <- struct{}{}
			order = append(order, soon(t, s.asked))
			synctest.Wait() // until the next message of the chat that was answered stands in line
		}
		close(s.free)
		r.platform.wait(t, 6)
		r.stop()
		for _, pair := range [][2]string{{"c1", "d1"}, {"a2", "d1"}, {"a3", "e1"}, {"d1", "e1"}} {
			before, after := slices.Index(order, "slow "+pair[0]), slices.Index(order, "slow "+pair[1])
			if before < 0 || after < 0 || before > after {
				t.Errorf("%s came after %s: %q", pair[0], pair[1], order)
			}
		}
	})
}

// A message behind a command that waits does not become part of the turn that runs before it.
func TestWhatWaitsBehindACommandIsNoPartOfTheTurnBeforeIt(t *testing.T) {
	for _, waits := range []string{"runs", "waits"} {
		t.Run("the command "+waits, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reached, letGo := make(chan struct{}, 10), make(chan struct{}, 10)
				used := make(chan struct{})
				r := newHarness(t, nil, busy(t, waiting(reached, letGo)), func(cfg *bridge.Config) {
					cfg.Commands = append(cfg.Commands, bridge.Command{CommandInfo: chats.CommandInfo{Name: "usage", Description: "Usage"}, Run: func(ctx context.Context, _ bridge.CommandCall) (string, error) {
						select {
						case <-used:
						case <-ctx.Done():
						}
						return "used", context.Cause(ctx)
					}})
				})
				r.accept(direct("1", "work"))
				soon(t, reached)
				r.accept(direct("2", "/usage"))
				if waits == "waits" {
					r.accept(direct("3", "/status"))
				}
				r.accept(direct("4", "two"))
				synctest.Wait()
				letGo <- struct{}{}
				synctest.Wait()
				r.want(t, "re: work")
				close(used)
				synctest.Wait()
				r.stop()
				got := r.platform.texts()
				if len(got) < 3 || got[0] != "re: work" || got[1] != "used" || got[len(got)-1] != "re: two" {
					t.Errorf("there stands %q", got)
				}
			})
		})
	}
}
