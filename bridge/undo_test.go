package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/toolgroups"
)

const back = "The conversation from before the /clear is back, with its tools."

// clearedRig is a bridge with a conversation that the owner of the group has cleared, and the card
// that says so.
func clearedRig(t *testing.T) (*harness, *clock, sent) {
	t.Helper()
	c := &clock{}
	r := newHarness(t, echo, func(cfg *bridge.Config) {
		cfg.Now, cfg.Limits.DrainTimeout = c.Now, 20*time.Second
		cfg.Access.Admins = []string{"fake:9"}
	})
	r.accept(group("1", "9", "before"))
	r.platform.wait(t, 1)
	r.accept(group("2", "9", "/clear"))
	return r, c, r.platform.wait(t, 2)[1]
}

func TestUndoBringsTheConversationBack(t *testing.T) {
	r, _, card := clearedRig(t)
	undo := card.button(t, "↩ Undo")
	r.restart()
	r.accept(pressOn(card, "p1", "6", undo))
	if got := r.platform.toast(t, "p1"); !strings.HasPrefix(got, "Sorry") {
		t.Errorf("somebody else was told %q", got)
	}
	r.accept(group("3", "6", "/undo"))
	if got := r.platform.wait(t, 3)[2]; !strings.HasPrefix(got.text, "Sorry") {
		t.Errorf("somebody else was told %q", got.text)
	}
	press := pressOn(card, "p2", "9", undo)
	again := pressOn(card, "p3", "9", undo)
	r.accept(press, press, again)
	r.platform.wait(t, 4)
	r.accept(group("4", "9", "after"))
	got := r.platform.wait(t, 5)
	if got[3].text != back || got[3].to.ReplyTo != "2" || got[4].text != "re: after" {
		t.Errorf("there stands %+v", got[3:])
	}
	r.platform.until(t, "the end of the button", func(all []sent) bool { return all[1].buttons == nil && !strings.Contains(all[1].text, "/undo") })
	if said := r.countOf("fake:g/1"); said != 4 {
		t.Errorf("%d messages in the conversation", said)
	}
	r.accept(group("5", "9", "/undo"))
	if got := r.platform.wait(t, 6)[5].text; got != "There is nothing to undo: no conversation was cleared here in the last ten minutes." {
		t.Errorf("undone twice: %q", got)
	}
	// Another /clear ends the same conversation, and begins an empty one.
	r.accept(group("6", "9", "/clear"), group("7", "9", "anew"))
	r.platform.wait(t, 8)
	if said := r.countOf("fake:g/2"); said != 2 {
		t.Errorf("%d messages in the next conversation", said)
	}
	r.did(t, "clear fake:9 Ann fake:g fake:g/1", "undo fake:9 Ann fake:g fake:g/1", "clear fake:9 Ann fake:g fake:g/1")
}

// did checks what the audit has, the newest first.
func (r *harness) did(t *testing.T, want ...string) {
	t.Helper()
	entries, err := audit.List(t.Context(), r.cfg.Store, 0)
	var did []string
	for _, e := range entries {
		if e.At.IsZero() {
			t.Errorf("the audit does not say when: %+v", e)
		}
		did = append(did, e.Action+" "+e.By+" "+e.Name+" "+e.Chat+" "+e.About)
	}
	if err != nil || !slices.Equal(did, want) {
		t.Errorf("the audit says %q, %v", did, err)
	}
}

func TestUndoThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		then func(r *harness, c *clock)
		want string
	}{
		"something was asked since": {func(r *harness, _ *clock) {
			r.accept(group("3", "6", "new"))
			r.platform.wait(t, 3)
		}, "I can no longer undo the /clear"},
		"something is being asked": {func(r *harness, _ *clock) { r.accept(group("3", "6", "new")) }, "I can no longer undo the /clear"},
		"it is too late":           {func(_ *harness, c *clock) { c.advance(11 * time.Minute) }, "There is nothing to undo"},
		"another /clear, of nothing, changes nothing": {func(r *harness, _ *clock) {
			r.accept(group("3", "9", "/clear"))
			r.platform.wait(t, 3)
		}, back},
	} {
		t.Run(name, func(t *testing.T) {
			r, c, _ := clearedRig(t)
			tt.then(r, c)
			r.accept(group("4", "9", "/undo"))
			r.platform.until(t, "an answer that begins with "+tt.want, func(all []sent) bool {
				return slices.ContainsFunc(all, func(s sent) bool { return strings.HasPrefix(s.text, tt.want) })
			})
		})
	}
}

// What was asked since a /clear and waits, or is being answered, would be lost: an /undo is refused
// then, although nothing of it is part of the new conversation yet.
func TestUndoIsRefusedWhileAMessageWaits(t *testing.T) {
	for name, elsewhere := range map[string]bool{"for its answer": false, "for its turn": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow()
				r := newHarness(t, s.think, func(cfg *bridge.Config) { cfg.Limits.MaxTurns = 1 })
				r.accept(direct("1", "before"))
				r.platform.wait(t, 1)
				r.accept(direct("2", "/clear"))
				r.platform.wait(t, 2)
				if elsewhere {
					r.accept(in("busy", "1", "slow there"))
					soon(t, s.asked)
				}
				r.accept(direct("3", "slow new"))
				synctest.Wait()
				r.accept(direct("4", "/undo"))
				if got := r.platform.wait(t, 3)[2].text; !strings.HasPrefix(got, "I can no longer undo the /clear") {
					t.Errorf("undone: %q", got)
				}
				close(s.free)
				r.platform.until(t, "the answer", func(all []sent) bool {
					return slices.ContainsFunc(all, func(s sent) bool { return s.text == "re: slow new" })
				})
				r.stop()
			})
		})
	}
}

// An /undo brings back what the newest /clear has ended, not what one before it has.
func TestUndoBringsTheNewestConversationBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &minded{slow: newSlow()}
		r := newHarness(t, m.think)
		for i, text := range []string{"one", "/clear", "two", "/clear", "/clear", "/undo", "next"} {
			r.accept(direct(fmt.Sprint(i), text))
			r.platform.wait(t, i+1)
			pass(t, 5)
		}
		r.stop()
		if _, seen := m.since(); !slices.Equal(seen, []string{"two", "re: two", "next"}) {
			t.Errorf("the conversation is %q", seen)
		}
	})
}

// A turn that a /clear has cut off is over in the conversation that an undo brings back.
func TestUndoAfterATurnWasCutOff(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think)
	r.accept(direct("1", "slow one"))
	<-s.asked
	r.accept(direct("2", "/clear"))
	r.platform.wait(t, 1)
	r.accept(direct("3", "/undo"))
	if got := r.platform.wait(t, 2)[1].text; got != back {
		t.Fatalf("undone: %q", got)
	}
	r.accept(direct("4", "next"))
	r.platform.wait(t, 3)
	if said := r.countOf("fake:1/1"); said != 4 {
		t.Errorf("%d messages in the conversation", said)
	}
}

// loader is a model that loads a group when it is told to, and otherwise says which tools it has.
type loader struct{}

func (loader) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == agent.RoleUser && last.Text == "load" {
		return agent.Reply{Calls: []agent.Call{{ID: "1", Name: "load_tool_group", Arguments: `{"group_name":"extra"}`}}}, nil
	}
	has := slices.ContainsFunc(req.Tools, func(t toolgroups.Tool) bool { return t.Name == "extra_tool" })
	return agent.Reply{Text: fmt.Sprint(last.Text, ": the tool is there: ", has)}, nil
}

// Where replicas share the chats, a /clear that one of them is given can be taken back at another,
// and the conversation is back with the groups that were loaded in it.
func TestUndoAtAnotherReplicaBringsTheGroupsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{{
			Name: "extra", DisplayName: "Extra", Description: "More.", Tools: []toolgroups.Tool{{
				Name: "extra_tool", Description: "A tool.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`),
				Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.TextResult("x") },
			}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		all := newSeveral(t, 2, nil, func(cfg *bridge.Config) {
			cfg.Turns.Agent, cfg.Turns.Tools = agent.New(agent.Config{Model: loader{}}), func() *toolgroups.Registry { return registry }
		})
		for i, text := range []string{"load", "one", "/clear", "/undo", "two", "/clear", "three"} {
			all[i%2].accept(in("1", fmt.Sprint(i), text))
			pass(t, 5)
		}
		got := all.texts()
		for _, want := range []string{"one: the tool is there: true", "two: the tool is there: true", "three: the tool is there: false", back} {
			if !slices.Contains(got, want) {
				t.Errorf("%q was not said: %q", want, got)
			}
		}
		all.stop(t)
	})
}

func TestTheAuditIsBounded(t *testing.T) {
	store, now := newHarness(t, echo).cfg.Store, time.Now()
	for i, age := range []time.Duration{time.Hour, audit.DefaultAge + time.Hour, 0, time.Hour} {
		e := audit.Entry{At: now.Add(-age), Action: "clear", By: string(rune('a' + i)), Chat: chats.Chat{Platform: "fake", ID: "1"}.String()}
		if err := audit.Append(t.Context(), store, "event", e); err != nil {
			t.Fatal(err)
		}
	}
	if err := audit.Prune(t.Context(), store, now.Add(-audit.DefaultAge)); err != nil {
		t.Fatal(err)
	}
	all, err := audit.List(t.Context(), store, 10)
	if err != nil || len(all) != 2 || all[0].By != "c" || all[1].By != "a" {
		t.Errorf("kept %+v, %v", all, err)
	}
}
