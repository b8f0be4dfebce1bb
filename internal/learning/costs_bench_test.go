package learning_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/internal/bill"
	"oneclaw/internal/budget"
	"oneclaw/internal/learning"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// BenchmarkCosts says what it takes to play a conversation of so many turns, each with a call,
// for all models and for one.
func BenchmarkCosts(b *testing.B) {
	groups, err := bill.ServerGroups()
	if err != nil {
		b.Fatal(err)
	}
	reg, err := bill.NewStandInRegistry(nil, groups, func(t *toolgroups.Tool) {
		t.Run = func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.Result{}, nil }
	})
	if err != nil {
		b.Fatal(err)
	}
	prices := func(string) search.Prices { return search.Prices{Write: 1, Read: .1, MinTokens: 1024} }
	money := func(string) (budget.Price, bool) { return budget.Price{Input: 1, Output: 2}, true }
	tool := groups[0].Tools[0].Name
	for _, turns := range []int{10, 100} {
		k := newKept(b)
		here := private("12345678")
		for i := range turns {
			id := fmt.Sprint(i)
			k.say(here, id, "Ann", "What does it say? "+strings.Repeat("word ", 40), nil,
				agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: id, Name: tool, Arguments: fmt.Sprintf(`{"path":%q}`, id)}}, Model: "m", Usage: &agent.Usage{Input: 1}},
				agent.Message{Role: agent.RoleTool, CallID: id, Tool: tool, Text: strings.Repeat("result "+id+" ", 100)}, answer("The plan "+id))
		}
		costs := learning.NewCosts(learning.CostsConfig{Store: k.Store, Price: money, BillConfig: func() bill.Config {
			return bill.Config{Registry: reg, Prompt: "You help.", Prices: prices, DollarPrice: money, Providers: bill.Providers(prices, func(string) int { return 0 })}
		}})
		for name, with := range map[string]learning.Selection{"all": {}, "one": {Models: []string{"gpt-5.6"}, Routings: []search.Routing{search.RoutingGroups}}} {
			b.Run(fmt.Sprintf("%d/%s", turns, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := costs.Compare(b.Context(), "telegram:12345678/1", with); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
