package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"oneclaw/agent"
	"oneclaw/internal/budget"
	"oneclaw/internal/config"
	"oneclaw/internal/models"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/websearch"
)

// addWebSearch adds the group web_search if a service is configured.
func (c *catalogue) addWebSearch(cfg config.Config, m *models.Models, private []netip.Prefix) error {
	services, err := cfg.Tools.WebSearch.Services()
	if err != nil || len(services) == 0 {
		return err
	}
	family, err := websearch.New(websearch.Config{
		Services: services, AllowPrivate: private, Resolver: cfg.Runtime.Resolver, ReserveCost: searchCharger(m),
		Now: cfg.Runtime.Now, Logger: c.log,
	})
	if err != nil {
		return err
	}
	group, err := family.Group()
	if err != nil {
		return fmt.Errorf("web search: %w", err)
	}
	c.groups = append(c.groups, group)
	return nil
}

// searchCharger returns a function that charges a search to the user who requested it.
func searchCharger(m *models.Models) func(context.Context, toolgroups.Scope, float64) (func(bool), error) {
	return func(ctx context.Context, scope toolgroups.Scope, dollars float64) (func(bool), error) {
		settle, err := m.Ledger.Buy(ctx, m.Payer(scope), budget.Dollars(dollars))
		if refusal, ok := errors.AsType[*agent.ModelError](err); ok {
			return nil, errors.New(refusal.Notice)
		}
		return settle, err
	}
}
