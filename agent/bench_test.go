package agent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"oneclaw/agent"
)

// Long histories restore in bounded work, without network.
func BenchmarkRestoreGroups(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		history := []agent.Message{asked(loads("0", "google_gmail")), loaded("0")}
		for len(history) < n {
			history = append(history, turns(1)...)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if len(agent.RestoreGroups(slices.Values(history))) != 1 {
					b.Fatal("not restored")
				}
			}
		})
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{100, 2000} {
		c := newChat(b, agent.Config{})
		answer := model(func(context.Context, agent.Request) (agent.Reply, error) { return says("ok"), nil })
		var history []agent.Message
		for i := range n {
			history = append(history, agent.Message{Role: agent.RoleUser, Text: fmt.Sprintf("%d What is the weather like where you are?", i)},
				agent.Message{Role: agent.RoleAssistant, Text: "I have no windows here, but I am told that it rains.", Final: true})
		}
		turn := c.turn
		turn.Model, turn.Set = answer, c.set(nil)
		turn.History = append(history, agent.Message{Role: agent.RoleUser, Text: "And now?"})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range c.agent.Run(b.Context(), turn) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
