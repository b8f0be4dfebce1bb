package app

import (
	"context"
	"log/slog"
	"strconv"

	"oneclaw/bridge/queue"
	"oneclaw/internal/budget"
	"oneclaw/internal/config"
	"oneclaw/internal/settings"
	"oneclaw/storage"
)

func openLedger(cfg config.Config, store storage.Store, s *settings.Settings, groupOf func(tool string) string, log *slog.Logger) (*budget.Ledger, error) {
	return budget.Open(budget.Config{
		Store: store, Limits: limitsOf(cfg.Budget, s), Prices: budget.KnownPrices().With(cfg.Prices),
		Location: zoneOf(s, cfg.Zone()), Now: cfg.Runtime.Now, ReplyTokens: cfg.Budget.ReplyTokens, GroupOf: groupOf, Logger: log,
		OnDamaged: newDeadLetters(cfg, store, log).AddDamaged,
	})
}

// newDeadLetters returns access to the dead letters in a store, for code outside of the bridge.
func newDeadLetters(cfg config.Config, store storage.KV, log *slog.Logger) queue.DeadLetterStore {
	return queue.DeadLetterStore{KV: store, Log: log, Now: cfg.Runtime.Now}
}

// limitsOf returns a function that returns the current limits.
func limitsOf(cfg config.BudgetConfig, s *settings.Settings) func(context.Context) (budget.Limits, error) {
	limits := budget.Limits{
		User:  budget.Limit{Money: budget.Dollars(cfg.UserUSD)},
		Chat:  budget.Limit{Tokens: cfg.ChatTokens, Money: budget.Dollars(cfg.ChatUSD)},
		Total: budget.Limit{Money: budget.Dollars(cfg.TotalUSD)},
		Month: budget.Limit{Tokens: cfg.MonthTokens, Money: budget.Dollars(cfg.MonthUSD)},
	}
	return func(ctx context.Context) (budget.Limits, error) {
		now := limits
		user, err := s.Values.Get(ctx, settings.SettingUserBudget)
		if err != nil {
			return now, err
		}
		total, err := s.Values.Get(ctx, settings.SettingTotalBudget)
		// The settings accept only whole numbers. An empty value means no bound.
		now.User.Tokens, _ = strconv.ParseInt(user, 10, 64)
		now.Total.Tokens, _ = strconv.ParseInt(total, 10, 64)
		return now, err
	}
}
