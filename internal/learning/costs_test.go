package learning_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/internal/bill"
	"oneclaw/internal/budget"
	"oneclaw/internal/learning"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

func TestWhatAConversationWouldHaveCost(t *testing.T) {
	k := newKept(t)
	here, log := private("12345678"), "telegram:12345678/1"
	read := agent.Call{ID: "y", Name: "read_doc", Arguments: `{"path":"plan"}`}
	gone := agent.Call{ID: "z", Name: "mcp_tool", Arguments: `{}`}
	k.say(here, "12345678", "Ann", "What does it say?", nil,
		agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{read, gone}, Model: "priced", Usage: &agent.Usage{Input: 1_000_000}},
		agent.Message{Role: agent.RoleTool, CallID: "y", Tool: "read_doc", Text: "the plan"},
		agent.Message{Role: agent.RoleTool, CallID: "z", Tool: "mcp_tool", Text: "x"}, answer("The plan."))
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "docs", Tools: []toolgroups.Tool{{
		Name: "read_doc", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
		Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
			t.Error("a tool runs")
			return toolgroups.Result{}, nil
		},
	}}}}})
	if err != nil {
		t.Fatal(err)
	}
	money := func(model string) (budget.Price, bool) { return budget.Price{Input: 1, Output: 2}, true }
	prices := func(string) search.Prices { return search.Prices{Write: 1, Read: .1, MinTokens: 1024} }
	costs := learning.NewCosts(learning.CostsConfig{Store: k.Store, Price: money, BillConfig: func() bill.Config {
		return bill.Config{Registry: reg, Prompt: "You help.", Prices: prices, DollarPrice: money, Providers: bill.Providers(prices, func(string) int { return 0 })}
	}})
	with := learning.Selection{Models: []string{"gpt-5.6", "Claude"}, Routings: []search.Routing{search.RoutingGroups, search.RoutingAll}}
	got, err := costs.Compare(t.Context(), log, with)
	if err != nil {
		t.Fatal(err)
	}
	if want := (learning.Usage{Rounds: 2, Input: 1_100_000, Cached: 10, Output: 50_000, USD: 1.2}); got.Actual != want || got.Omitted != 1 {
		t.Errorf("it was %+v, %d left, want %+v, 1", got.Actual, got.Omitted, want)
	}
	var lines []string
	for _, l := range got.Lines {
		lines = append(lines, l.Provider+" "+string(l.Routing))
		if l.Input == 0 || l.USD <= 0 {
			t.Errorf("%+v costs nothing", l)
		}
	}
	if want := []string{"gpt-5.6 groups", "gpt-5.6 all", "Claude groups", "Claude all"}; !slices.Equal(lines, want) {
		t.Errorf("compared are %q, want %q", lines, want)
	}
	for _, odd := range []learning.Selection{{Models: []string{"Claude", "nobody's"}}, {Routings: []search.Routing{search.RoutingAll, "nobody's"}}} {
		if _, err := costs.Compare(t.Context(), log, odd); !errors.Is(err, learning.ErrUnknown) || !strings.Contains(err.Error(), "nobody's") {
			t.Errorf("%v: %v", odd, err)
		}
	}
	if _, err := costs.Compare(t.Context(), "telegram:12345678/7", with); !errors.Is(err, bill.ErrEmpty) {
		t.Errorf("a conversation that there is not: %v", err)
	}
	k.say(here, "12345678", "Ann", strings.Repeat("long ", 1<<20), nil, answer("fine"))
	if _, err := costs.Compare(t.Context(), log, with); !errors.Is(err, learning.ErrTooLong) {
		t.Errorf("a long conversation: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := costs.Compare(ended, log, with); err == nil {
		t.Error("nobody waits any more, and it is played")
	}
}

func TestOneConversationIsPlayedAtATime(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	costs := learning.NewCosts(learning.CostsConfig{Store: newKept(t), BillConfig: func() bill.Config {
		close(begun)
		<-goOn
		return bill.Config{}
	}})
	done := make(chan error)
	go func() {
		_, err := costs.Compare(t.Context(), "telegram:1/1", learning.Selection{})
		done <- err
	}()
	<-begun
	if _, err := costs.Compare(t.Context(), "telegram:2/1", learning.Selection{}); !errors.Is(err, learning.ErrBusy) {
		t.Errorf("a second one: %v", err)
	}
	close(goOn)
	if err := <-done; !errors.Is(err, bill.ErrEmpty) {
		t.Errorf("the first one: %v", err)
	}
}
