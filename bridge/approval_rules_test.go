package bridge_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/turn"
	"oneclaw/toolgroups"
)

// Where the arguments of a call are mended before it runs, the policy decides about what the tool
// receives, and the card shows that.
func TestPolicyAndCardHaveTheArgumentsThatTheToolReceives(t *testing.T) {
	for called, tt := range map[string]struct {
		mended string
		shown  []string
	}{
		`{"count":"42"}`:           {`{"count":42}`, []string{"42"}},
		`{"count":1,"note":null}`:  {`{"count":1}`, []string{"1"}},
		`{"count":1,"note":"all"}`: {`{"count":1,"note":"all"}`, []string{"1", "all"}},
	} {
		t.Run(called, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var asked, received []string
				note := func(to *[]string, arguments json.RawMessage) {
					mu.Lock()
					defer mu.Unlock()
					*to = append(*to, string(arguments))
				}
				reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
					Name: "exec", Description: "Count.", Effect: toolgroups.Consequential,
					Parameters: json.RawMessage(`{"type":"object","properties":{"count":{"type":"number"},"note":{"type":"string"}},"required":["count"]}`),
					Run: func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
						note(&received, call.Arguments)
						return toolgroups.TextResult("counted")
					},
				}}})
				if err != nil {
					t.Fatal(err)
				}
				r := newHarness(t, nil, func(c *bridge.Config) {
					c.Turns.Agent, c.Turns.Tools = agent.New(agent.Config{Model: caller(called)}), func() *toolgroups.Registry { return reg }
					c.ApprovalPolicy = func(call toolgroups.Call, _ toolgroups.Tool) interact.Policy {
						note(&asked, call.Arguments)
						return interact.Policy{}
					}
				})
				r.accept(direct("1", "go"))
				card := r.platform.wait(t, 1)[0]
				r.accept(pressOn(card, "p", "1", card.button(t, "Allow once")))
				r.platform.wait(t, 2)
				r.stop()
				if !slices.Equal(received, []string{tt.mended}) {
					t.Errorf("the tool received %q, want %s", received, tt.mended)
				}
				if asked = slices.Compact(asked); !slices.Equal(asked, []string{tt.mended}) {
					t.Errorf("the policy was asked about %q, want %s", asked, tt.mended)
				}
				var blocks []string
				for i, block := range strings.Split(card.text, "```") {
					if i%2 == 1 {
						blocks = append(blocks, strings.TrimSpace(block))
					}
				}
				if !slices.Equal(blocks, tt.shown) {
					t.Errorf("the card shows %q, want %q: %s", blocks, tt.shown, card.text)
				}
			})
		})
	}
}

// In a direct chat the person who asked decides, and no other: not an administrator whose press
// arrives there, and not one on the pages.
func TestInADirectChatOnlyTheRequesterAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &execTools{}
		r := w.guarded(t, func(c *bridge.Config) {
			c.Access = access.Access{Allow: []string{"fake:1", "fake:2"}, Admins: []string{"fake:9"}}
		})
		r.accept(direct("1", "run a"))
		card := r.platform.wait(t, 1)[0]
		for _, label := range []string{"Allow once", "Deny"} {
			for _, user := range []string{"2", "9"} {
				id := "x" + user + label[:1]
				r.accept(pressOn(card, id, user, card.button(t, label)))
				if got := r.platform.toast(t, id); got != "Only the person who asked for this can decide." {
					t.Errorf("user %s, who pressed %q, is told %q", user, label, got)
				}
			}
		}
		// What has been pressed on the pages is told to no platform.
		if _, err := bridge.ApprovalsOf(r.bridge).Press(t.Context(), "fake:9", "Nine", card.button(t, "Allow once")); err != nil {
			t.Error(err)
		}
		if list, err := bridge.ApprovalsOf(r.bridge).Waiting(t.Context(), "fake:9", 10); err != nil || len(list) != 1 || list[0].AllowData != "" {
			t.Errorf("an administrator is shown %+v, %v", list, err)
		}
		synctest.Wait()
		if ran := w.commands(); len(ran) != 0 {
			t.Fatalf("ran %q", ran)
		}
		r.accept(pressOn(card, "mine", "1", card.button(t, "Allow once")))
		if got := r.platform.wait(t, 2)[1].text; got != "ran a" {
			t.Errorf("answer %q", got)
		}
		r.stop()
	})
}

// or answers slowly where that is asked for, and otherwise as another agent does.
func (s *slow) or(other turn.Agent) thinker {
	return func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if strings.HasPrefix(turn.History[len(turn.History)-1].Text, "slow") {
			return s.think(ctx, turn)
		}
		return other.Run(ctx, turn)
	}
}

// An approval is void where the settings name stricter approvers by the time the call is made.
func TestApproversThatWereTightenedVoidAnApproval(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after interact.Approvers
		by, want      string
	}{
		"as before":                     {interact.ApproversBoth, interact.ApproversBoth, "1", "ran a"},
		"only administrators now":       {interact.ApproversBoth, interact.ApproversAdmins, "1", notAllowed + "the person who asked approved it, and may not any more"},
		"only who asked now":            {interact.ApproversBoth, interact.ApproversRequester, "9", notAllowed + "an administrator approved it, and may not any more"},
		"an administrator is enough":    {interact.ApproversBoth, interact.ApproversAdmins, "9", "ran a"},
		"loosened is as strict as then": {interact.ApproversRequester, interact.ApproversBoth, "1", "ran a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow()
				w := &execTools{}
				var mu sync.Mutex
				now := tt.before
				r := w.guarded(t, func(c *bridge.Config) {
					c.Limits.MaxTurns = 1
					c.Turns.Agent = s.or(c.Turns.Agent)
					c.Access = access.Access{Allow: []string{"fake:1"}, Admins: []string{"fake:9"}}
					c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy {
						mu.Lock()
						defer mu.Unlock()
						return interact.Policy{Approvers: now}
					}
				})
				r.accept(group("1", "1", "run a"))
				card := r.platform.wait(t, 1)[0]
				r.accept(in("busy", "1", "slow")) // the only turn
				soon(t, s.asked)
				r.accept(pressOn(card, "p", tt.by, card.button(t, "Allow once")))
				if got := r.platform.toast(t, "p"); got != "Allowed once." {
					t.Fatalf("told %q", got)
				}
				mu.Lock()
				now = tt.after
				mu.Unlock()
				close(s.free)
				r.platform.wait(t, 3)
				r.stop()
				if got := r.platform.in("g")[1].text; !strings.HasPrefix(got, tt.want) {
					t.Errorf("answer %q, want %q", got, tt.want)
				}
				if ran := w.commands(); (len(ran) > 0) != (tt.want == "ran a") {
					t.Errorf("ran %q", ran)
				}
			})
		})
	}
}

// The question of a card has the number of the things that the call changes at once.
func TestACardSaysHowManyThingsACallChanges(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		`{"ids":["a","b","c"]}`: "**May I run `sort` on 3 things at once?**",
		`{"ids":["a"]}`:         "**May I run `sort`?**",
	} {
		r, _ := noteHarness(t)
		r.accept(direct("1", "call sort "+arguments))
		if card := r.platform.one(t, "May I run"); !strings.HasPrefix(card.text, want) {
			t.Errorf("%s asks %q", arguments, card.text)
		}
	}
}
