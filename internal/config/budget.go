package config

import (
	"fmt"

	"oneclaw/bridge/access"
	"oneclaw/internal/budget"
	"oneclaw/toolgroups"
)

// BudgetConfig bounds model usage in tokens and in dollars: per user and day, per chat and day, and in
// total per day and per month. 0 means no bound. UserTokens and TotalTokens can also be changed in a
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
	// GuestTokens is the daily bound of each user who was given access in a chat, except administrators.
	GuestTokens int64 `yaml:"guest_tokens" env:"ONECLAW_BUDGET_GUEST_TOKENS"`
	// ReplyTokens is the number of tokens that are reserved for a reply in advance.
	ReplyTokens int64 `yaml:"reply_tokens" env:"ONECLAW_BUDGET_REPLY_TOKENS"`
}

// PriceLookup returns a function that returns the prices of a model.
func (c Config) PriceLookup() func(model string) (budget.Price, bool) {
	known := budget.KnownPrices().With(c.Prices)
	return func(model string) (budget.Price, bool) { return known.Lookup("", model) }
}

// defaultGuestTokens is enough for about sixty answers a day.
const defaultGuestTokens = 300_000

// Allowance says how much a guest may use a day: the limit in force, and what that costs if the price of the model is
// known. It is empty if there is no bound.
func (c Config) Allowance() string {
	tokens := c.Budget.GuestTokens
	if tokens <= 0 {
		return ""
	}
	limit := budget.FormatCount(tokens) + " tokens"
	if p, ok := c.PriceLookup()(c.Model.Name); ok && p.Input > 0 {
		limit += fmt.Sprintf(" (about $%.2f)", float64(tokens)*p.Input/1e6)
	}
	return limit
}

// GuestLimit returns the limit for users who are not in the settings but were given access in a chat.
func (c Config) GuestLimit(user string, role toolgroups.Role) budget.Limit {
	if role != toolgroups.RoleUser || access.Access(c.Access).Role(user) != toolgroups.RoleStranger {
		return budget.Limit{}
	}
	return budget.Limit{Tokens: c.Budget.GuestTokens}
}
