package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"oneclaw/bridge/people"
	"oneclaw/internal/budget"
	"oneclaw/internal/price"
	"oneclaw/internal/settings"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// BudgetConfig bounds what models may use: by each user and each chat a day, by all a
// day and a month, in tokens and in dollars. 0 is no bound. The tokens of a user and of
// all can be changed in the chat (set_config).
type BudgetConfig struct {
	UserTokens  int64   `yaml:"user_tokens" env:"ONECLAW_BUDGET_USER_TOKENS"`
	UserUSD     float64 `yaml:"user_usd" env:"ONECLAW_BUDGET_USER_USD"`
	ChatTokens  int64   `yaml:"chat_tokens" env:"ONECLAW_BUDGET_CHAT_TOKENS"`
	ChatUSD     float64 `yaml:"chat_usd" env:"ONECLAW_BUDGET_CHAT_USD"`
	TotalTokens int64   `yaml:"total_tokens" env:"ONECLAW_BUDGET_TOTAL_TOKENS"`
	TotalUSD    float64 `yaml:"total_usd" env:"ONECLAW_BUDGET_TOTAL_USD"`
	MonthTokens int64   `yaml:"month_tokens" env:"ONECLAW_BUDGET_MONTH_TOKENS"`
	MonthUSD    float64 `yaml:"month_usd" env:"ONECLAW_BUDGET_MONTH_USD"`
	// GuestTokens bounds who was let in by a button, or by /people, and is no administrator.
	GuestTokens int64 `yaml:"guest_tokens" env:"ONECLAW_BUDGET_GUEST_TOKENS"`
	// ReplyTokens is what is reserved for a reply before it is there.
	ReplyTokens int64 `yaml:"reply_tokens" env:"ONECLAW_BUDGET_REPLY_TOKENS"`
}

// defaultGuestTokens are some sixty answers a day.
const defaultGuestTokens = 300_000

// allowance says what somebody may use who is let in; empty for no bound.
func (b BudgetConfig) allowance() string {
	if b.GuestTokens <= 0 {
		return ""
	}
	return fmt.Sprintf("They may use %s tokens a day (budget.guest_tokens).", price.Count(b.GuestTokens))
}

// guest bounds users who are not in the settings: those who were let in.
func (c Config) guest(scope toolgroups.Scope) budget.Limit {
	if scope.Role != toolgroups.RoleUser || people.Access(c.Access).Role(scope.User) != toolgroups.RoleStranger {
		return budget.Limit{}
	}
	return budget.Limit{Tokens: c.Budget.GuestTokens}
}

func openLedger(cfg Config, store storage.Store, s *settings.Settings, log *slog.Logger) (*budget.Ledger, error) {
	return budget.Open(budget.Config{
		Store: store, Limits: limitsOf(cfg.Budget, s), Prices: price.Defaults().With(cfg.Prices),
		Location: zoneOf(s, cfg.zone()), Now: cfg.outside.now, ReplyTokens: cfg.Budget.ReplyTokens, Exclusive: !cfg.Store.Shared(), Logger: log,
	})
}

// limitsOf returns the limits as they are set now.
func limitsOf(cfg BudgetConfig, s *settings.Settings) func(context.Context) (budget.Limits, error) {
	limits := budget.Limits{
		User:  budget.Limit{Money: price.Dollars(cfg.UserUSD)},
		Chat:  budget.Limit{Tokens: cfg.ChatTokens, Money: price.Dollars(cfg.ChatUSD)},
		Total: budget.Limit{Money: price.Dollars(cfg.TotalUSD)},
		Month: budget.Limit{Tokens: cfg.MonthTokens, Money: price.Dollars(cfg.MonthUSD)},
	}
	return func(ctx context.Context) (budget.Limits, error) {
		now := limits
		user, err := s.Values.Get(ctx, settings.SettingUserBudget)
		if err != nil {
			return now, err
		}
		total, err := s.Values.Get(ctx, settings.SettingTotalBudget)
		// The settings take whole numbers only; an empty one is no bound.
		now.User.Tokens, _ = strconv.ParseInt(user, 10, 64)
		now.Total.Tokens, _ = strconv.ParseInt(total, 10, 64)
		return now, err
	}
}
