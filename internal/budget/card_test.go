package budget_test

import (
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/internal/budget"
	"oneclaw/toolgroups"
)

// A guest's own limit is that which /usage shows, and which an administrator raises.
func TestTheBudgetOfAGuest(t *testing.T) {
	for name, limits := range map[string]budget.Limits{"no other limit": {}, "a higher one": {User: budget.Limit{Tokens: 1_000_000}}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, limits)
			guest := ann()
			guest.Limit = budget.Limit{Tokens: 300_000}
			scope := toolgroups.Scope{User: guest.User, Chat: guest.Chat, Direct: true}
			m := &fake{usage: agent.Usage{Input: 299_000}}
			if err := ask(t, b.Ledger, guest, m, request(1)); err != nil {
				t.Fatal(err)
			}
			usage := budget.Commands(b.Ledger, func(toolgroups.Scope) budget.Payer { return guest })[0]
			if told, err := usage.Run(t.Context(), bridge.CommandCall{Scope: scope}); err != nil || !strings.Contains(told, "299,000 of 300,000 tokens (1,000 left)") {
				t.Errorf("/usage: %q, %v", told, err)
			}
			m.usage.Input = 1000
			if err := ask(t, b.Ledger, guest, m, request(1)); err != nil {
				t.Fatal(err)
			}
			cards := budget.CardHandler{Ledger: b.Ledger, Store: b.store}
			card, err := cards.RefusalCard(t.Context(), scope, ask(t, b.Ledger, guest, m, request(1)))
			if err != nil {
				t.Fatal(err)
			}
			raised, err := cards.Pressed(t.Context(), interact.Press{
				Scope: toolgroups.Scope{User: "telegram:9", Role: toolgroups.RoleAdmin}, Place: chats.Chat{Platform: "telegram", ID: "1"}, Choice: "raise", Card: card,
			})
			if err != nil || raised.Text != "The budget was raised to 600,000 tokens for today. Please send your message again." {
				t.Errorf("%+v, %v", raised, err)
			}
			if err := ask(t, b.Ledger, guest, m, request(1)); err != nil {
				t.Errorf("after the raise: %v", err)
			}
		})
	}
}
