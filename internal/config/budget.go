package config

import (
	"fmt"

	"oneclaw/bridge/access"
	"oneclaw/internal/budget"
	"oneclaw/toolgroups"
)

// BudgetConfig bounds model usage: per user and per chat a day, and of all a day and a month, in
// tokens and in dollars. 0 is no bound. The tokens of a user and of all can be changed in the
// chat (set_config).
type BudgetConfig struct {
	UserTokens  int64   `yaml:"user_tokens" env:"ONECLAW_BUDGET_USER_TOKENS"`
	UserUSD     float64 `yaml:"user_usd" env:"ONECLAW_BUDGET_USER_USD"`
	ChatTokens  int64   `yaml:"chat_tokens" env:"ONECLAW_BUDGET_CHAT_TOKENS"`
	ChatUSD     float64 `yaml:"chat_usd" env:"ONECLAW_BUDGET_CHAT_USD"`
	TotalTokens int64   `yaml:"total_tokens" env:"ONECLAW_BUDGET_TOTAL_TOKENS"`
	TotalUSD    float64 `yaml:"total_usd" env:"ONECLAW_BUDGET_TOTAL_USD"`
	MonthTokens int64   `yaml:"month_tokens" env:"ONECLAW_BUDGET_MONTH_TOKENS"`
	MonthUSD    float64 `yaml:"month_usd" env:"ONECLAW_BUDGET_MONTH_USD"`
	// GuestTokens bounds users who were let in by a button or /people and are not administrators.
	GuestTokens int64 `yaml:"guest_tokens" env:"ONECLAW_BUDGET_GUEST_TOKENS"`
	// ReplyTokens are reserved for a reply in advance.
	ReplyTokens int64 `yaml:"reply_tokens" env:"ONECLAW_BUDGET_REPLY_TOKENS"`
}

// Money returns the function that returns the prices of a model.
func (c Config) Money() func(model string) (budget.Price, bool) {
	known := budget.KnownPrices().With(c.Prices)
	return func(model string) (budget.Price, bool) { return known.For("", model) }
}

// defaultGuestTokens is about sixty answers a day.
const defaultGuestTokens = 300_000

// Allowance describes what a new guest may use, in money if the price of the model is known;
// empty without a bound.
func (c Config) Allowance() string {
	tokens := c.Budget.GuestTokens
	if tokens <= 0 {
		return ""
	}
	if p, ok := c.Money()(c.Model.Name); ok && p.Input > 0 {
		return fmt.Sprintf("They may use about $%.2f a day.", float64(tokens)*p.Input/1e6)
	}
	return fmt.Sprintf("They may use %s tokens a day (budget.guest_tokens).", budget.Count(tokens))
}

// Guest returns the limit of users who are not in the settings: those who were let in.
func (c Config) Guest(scope toolgroups.Scope) budget.Limit {
	if scope.Role != toolgroups.RoleUser || access.Access(c.Access).Role(scope.User) != toolgroups.RoleStranger {
		return budget.Limit{}
	}
	return budget.Limit{Tokens: c.Budget.GuestTokens}
}
