package agent_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// Groups that are loaded by hand are restored like any others, from all records and from
// the labelled ones alone, and what is on record needs no arranging.
func TestLoadByHandIsRestored(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		var history, labelled []agent.Message
		var want []string
		for range rapid.IntRange(0, 8).Draw(rt, "loads") {
			name := rapid.SampledFrom(append(w.registry.GroupNames(), "nothing", "")).Draw(rt, "group")
			set := toolgroups.NewSet(func() *toolgroups.Registry { return w.registry }, agent.RestoreGroups(slices.Values(history)))
			messages, fault := agent.LoadByHand(t.Context(), set.Round(), toolgroups.Scope{Role: toolgroups.RoleOwner}, name)
			if fault != nil {
				if len(messages) > 0 || slices.Contains(w.registry.GroupNames(), name) && fault.Code != toolgroups.CodeEmptyGroup {
					rt.Fatalf("%s: %v with %d messages", name, fault, len(messages))
				}
				continue
			}
			history = append(history, messages...)
			if !slices.Contains(want, name) {
				want = append(want, name)
			}
		}
		for _, m := range history {
			if m.Label() == agent.LabelLoad {
				labelled = append(labelled, m)
			}
		}
		if got := agent.RestoreGroups(slices.Values(history)); !slices.Equal(got, want) {
			rt.Fatalf("restored %v, want %v", got, want)
		}
		if got := agent.RestoreGroups(slices.Values(labelled)); !slices.Equal(got, want) {
			rt.Fatalf("restored %v from the labelled records, want %v", got, want)
		}
		if len(agent.Arrange(history)) != len(history) {
			rt.Fatalf("a model is shown %d of %d messages", len(agent.Arrange(history)), len(history))
		}
	})
}
