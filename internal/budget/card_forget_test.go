package budget_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/turn"
	"oneclaw/internal/budget"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// quiet is a platform on which no user speaks.
type quiet struct{}

func (quiet) Name() string { return "telegram" }

func (quiet) Run(ctx context.Context, _ chats.Inbox) error {
	<-ctx.Done()
	return nil
}

func (quiet) Render(markdown string) []chats.Part { return []chats.Part{{Text: markdown}} }

func (quiet) Send(context.Context, chats.Address, chats.Part) (string, error) { return "1", nil }

func (quiet) Edit(context.Context, chats.Address, string, chats.Part) error { return nil }

func (quiet) AnswerPress(context.Context, chats.Message, string) error { return nil }

// A card is deleted when the user whom it quotes is forgotten, so it names no other.
func TestACardAboutABudgetQuotesOneUser(t *testing.T) {
	for name, c := range map[string]struct {
		limits      budget.Limits
		asks, quote string // who asks an administrator, and whom that card quotes
		text        string
	}{
		"their own, they ask":     {budget.Limits{User: budget.Limit{Tokens: 1000}}, "telegram:1", "telegram:1", "“Ann” `telegram:1` asks for more budget in `telegram:-5`.\n\nUsed by them: "},
		"their own, another asks": {budget.Limits{User: budget.Limit{Tokens: 1000}}, "telegram:2", "telegram:1", "Somebody else asks for more budget in `telegram:-5`.\n\nUsed by telegram:1: "},
		"that of all":             {budget.Limits{Total: budget.Limit{Tokens: 1000}}, "telegram:2", "telegram:2", "“Ann” `telegram:2` asks for more budget in `telegram:-5`.\n\nUsed by everybody together: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.limits)
			group := chats.Chat{Platform: "telegram", ID: "-5"}
			scope := toolgroups.Scope{User: "telegram:1", Chat: group.String(), Role: toolgroups.RoleUser}
			payer, m := budget.Payer{User: scope.User, Chat: scope.Chat}, &fake{usage: agent.Usage{Input: 1000}}
			if err := ask(t, b.Ledger, payer, m, request(1)); err != nil {
				t.Fatal(err)
			}
			its := running(t, b.store)
			cards := budget.CardHandler{Bridge: func() *bridge.Bridge { return its }, Ledger: b.Ledger, Store: b.store, Admins: []string{"telegram:9"}}
			direct, err := json.Marshal(conversation.Conversation{Chat: chats.Chat{Platform: "telegram", ID: "9"}, Generation: 1})
			if err == nil {
				_, err = b.store.Put(t.Context(), conversation.ConversationPrefix+"telegram:9/telegram:9/1", direct, storage.Any)
			}
			if err != nil {
				t.Fatal(err)
			}
			card, err := cards.RefusalCard(t.Context(), scope, ask(t, b.Ledger, payer, m, request(1)))
			if err != nil || card.QuotedUser != scope.User {
				t.Fatalf("the refusal quotes %q: %v", card.QuotedUser, err)
			}
			scope.User = c.asks
			if _, err := cards.Pressed(t.Context(), interact.Press{Scope: scope, UserName: "Ann", Place: group, Choice: "ask", Card: card}); err != nil {
				t.Fatal(err)
			}
			posts := 0
			for entry, err := range b.store.List(t.Context(), storage.Range{Prefix: "card/"}) {
				var posted interact.Card
				posts++
				if err == nil {
					err = json.Unmarshal(entry.Value, &posted)
				}
				if err != nil || posted.QuotedUser != c.quote || !strings.HasPrefix(posted.Text, c.text) {
					t.Errorf("the request quotes %q and says %q: %v", posted.QuotedUser, posted.Text, err)
				}
			}
			if posts != 1 {
				t.Errorf("%d cards were posted", posts)
			}
		})
	}
}

// running returns a bridge that runs until the test ends.
func running(t *testing.T, store storage.Store) *bridge.Bridge {
	t.Helper()
	tools, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := bridge.New(bridge.Config{
		Store: store, DataDir: t.TempDir(), Platforms: []chats.Platform{quiet{}}, Access: access.Access{Allow: []string{"*"}},
		Turns:        turn.Settings{Agent: agent.New(agent.Config{Model: &fake{}}), Tools: func() *toolgroups.Registry { return tools }},
		CardHandlers: map[string]interact.Handler{budget.CardKind: func(context.Context, interact.Press) (interact.Result, error) { return interact.Result{}, nil }},
		Limits:       bridge.Limits{DrainTimeout: -1}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b
}
