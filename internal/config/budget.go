package config

import (
	"fmt"

	"oneclaw/bridge/access"
	"oneclaw/internal/budget"
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

// Money returns what says what the tokens of a model cost.
func (c Config) Money() func(model string) (budget.Price, bool) {
	known := budget.KnownPrices().With(c.Prices)
	return func(model string) (budget.Price, bool) { return known.For("", model) }
}

// defaultGuestTokens are some sixty answers a day.
const defaultGuestTokens = 300_000

// Allowance says what a user may use who is let in, in money where the price of the model is
// known; empty for no bound.
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

// Guest bounds users who are not in the settings: those who were let in.
func (c Config) Guest(scope toolgroups.Scope) budget.Limit {
	if scope.Role != toolgroups.RoleUser || access.Access(c.Access).Role(scope.User) != toolgroups.RoleStranger {
		return budget.Limit{}
	}
	return budget.Limit{Tokens: c.Budget.GuestTokens}
}
