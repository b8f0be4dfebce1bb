package app

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge/turn"
	"oneclaw/internal/budget"
	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/models"
	"oneclaw/internal/settings"
	"oneclaw/toolgroups"
)

// TestScheduledTurnsCountForTheirAuthor: what a task uses is charged to who made it,
// like what they ask themselves; a summary of the conversation is, too, because it is made
// with the model of the turn.
func TestScheduledTurnsCountForTheirAuthor(t *testing.T) {
	t.Parallel()
	model, err := openai.New(openai.Config{Responder: openai.Offline{}, Key: "sk-emulated"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	address, err := model.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Model = models.OwnModel{APIKey: "sk-emulated", BaseURL: address, Name: openai.DefaultModel}
	log := slog.New(slog.DiscardHandler)
	store, err := OpenStore(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	changing, vault, err := OpenSettings(cfg, store, log)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := openLedger(cfg, store, changing, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close() })
	m := models.New(models.Config{Own: cfg.Model, HTTPClient: cfg.ModelClient(), Settings: changing, Vault: vault, Ledger: ledger, Logger: log})
	for _, scheduled := range []bool{false, true} {
		scope := toolgroups.Scope{User: "telegram:1", Chat: "telegram:-5", Owner: "telegram:-5", Scheduled: scheduled}
		persona, err := m.Profile(t.Context(), scope, turn.ForMessage)
		if err != nil {
			t.Fatal(err)
		}
		req := agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "hello"}}}
		if _, err := persona.Model.Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
	}
	// What administrators set in a chat acts at once.
	if err := changing.Values.Set(t.Context(), settings.SettingUserBudget, "1"); err != nil {
		t.Fatal(err)
	}
	persona, err := m.Profile(t.Context(), toolgroups.Scope{User: "telegram:1", Chat: "telegram:1", Owner: "telegram:1"}, turn.ForMessage)
	if err != nil {
		t.Fatal(err)
	}
	var failure *agent.ModelError
	if _, err := persona.Model.Complete(t.Context(), agent.Request{}, nil); !errors.As(err, &failure) || failure.Kind != agent.KindBudget {
		t.Errorf("beyond the budget: %v", err)
	}
	r, err := ledger.Report(t.Context(), budget.Payer{User: "telegram:1", Chat: "telegram:-5"})
	if err != nil || r.User.Spent.Calls != 2 || r.Chat.Spent.Calls != 2 || r.User.Spent.Input == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNumbersAreChecked names the setting that cannot be.
func TestNumbersAreChecked(t *testing.T) {
	for want, change := range map[string]func(*config.Config){
		"budget.user_tokens (ONECLAW_BUDGET_USER_TOKENS)":             func(c *config.Config) { c.Budget.UserTokens = -1 },
		"budget.month_usd (ONECLAW_BUDGET_MONTH_USD)":                 func(c *config.Config) { c.Budget.MonthUSD = -0.5 },
		"budget.chat_usd (ONECLAW_BUDGET_CHAT_USD)":                   func(c *config.Config) { c.Budget.ChatUSD = math.NaN() },
		"limits.waiting (ONECLAW_MAX_WAITING)":                        func(c *config.Config) { c.Limits.MaxWaiting = -1 },
		"max_parts (ONECLAW_MAX_PARTS)":                               func(c *config.Config) { c.MaxParts = -1 },
		"tools.workspace_mib (ONECLAW_TOOLS_WORKSPACE_MIB)":           func(c *config.Config) { c.Tools.WorkspaceMiB = 0 },
		"tools.disk_reserve_mib (ONECLAW_TOOLS_DISK_RESERVE_MIB)":     func(c *config.Config) { c.Tools.DiskReserveMiB = 1 << 50 },
		"tools.browser_memory_mib (ONECLAW_TOOLS_BROWSER_MEMORY_MIB)": func(c *config.Config) { c.Tools.BrowserMemoryMiB = 100 },
		"approval_timeout (ONECLAW_APPROVAL_TIMEOUT)":                 func(c *config.Config) { c.ApprovalTimeout = -1 },
		"store (ONECLAW_STORE): want bolt, or postgres://":            func(c *config.Config) { c.Store = "postgres" },
		"prices: x": func(c *config.Config) { c.Prices = budget.PriceTable{"x": {Input: -1}} },
	} {
		cfg := config.Default()
		change(&cfg)
		err := cfg.Check()
		if err == nil {
			t.Errorf("%s: no error", want)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
