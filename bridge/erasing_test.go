package bridge_test

import (
	"context"
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
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// A summary of a group's conversation tells what all have said. It goes with what one of them has
// the bot forget, although others have spoken since; what they said stays.
func TestForgettingTakesTheSummaryBehindLaterTurnsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scribe{}
		r, w := newLong(t, s, func(cfg *bridge.Config) { cfg.Access.Admins = []string{"fake:1"} })
		n := 0
		say := func(user string) {
			t.Helper()
			r.accept(group(fmt.Sprint(n), user, question(n)))
			n++
			r.platform.awaitIn(t, "g", n)
			pass(t, 1)
		}
		say("1")
		for s.summaries() == 0 && n < 40 {
			say("6")
		}
		say("6")
		w.mu.Lock()
		seen := len(w.seen)
		if first := w.seen[seen-1][0]; !strings.Contains(first.Text, "#0#") {
			t.Fatalf("the model is shown %q first", first.Text)
		}
		w.mu.Unlock()
		r.forget(t)
		pass(t, 60)
		if found := placesOf(t, r.cfg.Store, "#0#"); len(found) > 0 {
			t.Errorf("it is still in %q", found)
		}
		say("6")
		if got := marked(s.last().Messages); slices.Contains(got, "#0#") || !slices.Contains(got, fmt.Sprintf("#%d#", n-2)) {
			t.Errorf("the model is shown %q", got)
		}
	})
}

// dyingEraser dies with its process before the second time that it erases something.
type dyingEraser struct {
	mortalStore
	erased *atomic.Int32
}

func (s dyingEraser) Erase(ctx context.Context, log string, left ...storage.Record) error {
	if s.erased.Add(1) == 2 {
		s.life.end()
	}
	return s.life.around(func() error { return s.Store.Erase(ctx, log, left...) })
}

// A process dies in the middle of an erasure that takes several writes: the next one finds all that
// is left, also of a turn whose question was part of it.
func TestAnErasureOfManyRecordsOutlivesAKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		life, erased := &mortal{dead: make(chan struct{})}, new(atomic.Int32)
		r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			if turn.History[len(turn.History)-1].Text != "secret" {
				return echo(ctx, turn)
			}
			return func(yield func(agent.Message, error) bool) {
				for n := range 300 {
					id := fmt.Sprint(n)
					if !yield(agent.Message{Role: agent.RoleAssistant, Text: "secret", Calls: []agent.Call{{ID: id, Name: "x"}}}, nil) ||
						!yield(agent.Message{Role: agent.RoleTool, CallID: id, Status: agent.StatusOK, Text: "secret"}, nil) {
						return
					}
				}
				yield(agent.Message{Role: agent.RoleAssistant, Text: "done", Final: true}, nil)
			}
		}, func(cfg *bridge.Config) {
			cfg.Limits.DrainTimeout = time.Minute
			cfg.Store = dyingEraser{mortalStore{cfg.Store, life}, erased}
		})
		r.accept(group("1", "6", "mine"), group("2", "1", "secret"), group("3", "6", "mine, too"))
		r.platform.awaitIn(t, "g", 3)
		pass(t, 1)
		r.forget(t)
		pass(t, 30)
		if erased.Load() < 2 {
			t.Fatal("it did not die")
		}
		r.stop()
		r.cfg.Store = r.cfg.Store.(dyingEraser).Store
		r.start()
		pass(t, 60)
		if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 {
			t.Errorf("there are still secrets in %d places: %q", len(found), found[0])
		}
		if found := placesOf(t, r.cfg.Store, "mine"); len(found) < 4 {
			t.Errorf("what others said is only in %q", found)
		}
	})
}

// An erasure waits behind a turn, or runs, while the turn before it is stopped, the conversation is
// cleared or the user loses access. It is done all the same.
func TestNoCommandEndsAnErasure(t *testing.T) {
	for _, command := range []string{"/stop", "/clear", "/people remove fake:1"} {
		for _, when := range []string{"waits", "waits in a group", "runs"} {
			t.Run(command+" while it "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { eraseDespite(t, command, when) })
			})
		}
	}
}

func eraseDespite(t *testing.T, command, when string) {
	release := make(chan struct{})
	hold := func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if strings.Contains(turn.History[len(turn.History)-1].Text, "hold") {
			select {
			case <-ctx.Done():
			case <-release:
			}
		}
		return echo(ctx, turn)
	}
	r := newHarness(t, hold, func(cfg *bridge.Config) {
		cfg.Access = access.Access{Allow: []string{"fake:6"}, Admins: []string{"fake:6", "fake:9"}}
		cfg.Hooks.Forget = func(ctx context.Context, _ string, _ chats.Chat) error {
			if when != "runs" {
				return nil
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-release:
				return nil
			}
		}
	})
	admin := func(id, text string) chats.Message {
		m := direct(id, text)
		m.Chat.ID, m.User = "9", "9"
		return m
	}
	r.accept(admin("a1", "/people add fake:1"))
	pass(t, 5)
	r.accept(direct("1", "secret"), group("g1", "1", "secret in the group"))
	pass(t, 5)
	switch when {
	case "waits":
		r.accept(direct("2", "hold"))
	case "waits in a group":
		r.accept(group("g2", "6", "hold"))
	}
	pass(t, 5)
	r.forget(t)
	pass(t, 5)
	switch {
	case strings.HasPrefix(command, "/people"):
		r.accept(admin("a2", command))
	case when == "waits in a group":
		r.accept(group("g3", "6", command))
	default:
		r.accept(direct("3", command))
	}
	pass(t, 5)
	close(release)
	pass(t, 60)
	if found := placesOf(t, r.cfg.Store, "secret"); len(found) > 0 || !slices.Contains(r.platform.texts(), gone) {
		t.Errorf("there are still secrets in %q, and there stands %q", found, r.platform.texts())
	}
}
