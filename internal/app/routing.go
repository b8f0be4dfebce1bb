package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"oneclaw/internal/budget"
	"oneclaw/internal/config"
	"oneclaw/internal/models"
	"oneclaw/internal/settings"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/search"
)

// routers has a router for each mode and uses the one in the current settings.
type routers struct {
	settings *settings.Settings
	byMode   map[string]toolgroups.Router
	start    string
	log      *slog.Logger
}

func newRouters(cfg config.Config, s *settings.Settings, m *models.Models, servers *mcp.Client, log *slog.Logger) (*routers, error) {
	for _, warning := range cfg.Tools.ToolSearch.Warnings {
		log.Warn("setting tools.tool_search", "warning", warning)
	}
	if said := cfg.SearchSaid(); said != "" {
		log.Info("setting tools.tool_search", "routing", cfg.Tools.Routing, "effect", said)
	}
	r := &routers{settings: s, byMode: map[string]toolgroups.Router{}, start: cfg.Tools.Routing, log: log}
	ranker, err := m.Ranker(cfg.Tools.ToolSearch.Embeddings)
	if err != nil {
		return nil, err
	}
	for _, mode := range search.Routings() {
		router, err := search.NewRouter(search.RouterConfig{
			Routing: mode, Config: cfg.Tools.ToolSearch, Prices: CachePrices(cfg),
			Unavailable: func() []search.Unavailable { return unavailable(servers) }, Ranker: ranker, Logger: log,
		})
		if err != nil {
			return nil, fmt.Errorf("routing of tools: %w", err)
		}
		r.byMode[string(mode)] = router
	}
	return r, nil
}

// CachePrices returns the cache prices of a model, from its tokens' prices or, if unknown, those
// of a similar model.
func CachePrices(cfg config.Config) func(model string) search.Prices {
	table := budget.KnownPrices().With(cfg.Prices)
	return func(model string) search.Prices {
		prices := search.Prices{Write: 1, Read: 1}
		p := table.Like(model)
		if p.Input > 0 && p.CachedInput > 0 {
			prices.Read = p.CachedInput / p.Input
			prices.Write = cmp.Or(p.CacheWrite, p.Input) / p.Input
			prices.Min, prices.MaxAge = budget.MinCacheable(model), budget.CacheTTL(model)
		}
		return prices
	}
}

// Route implements toolgroups.Router.
func (r *routers) Route(facts toolgroups.Facts) toolgroups.Route {
	mode, err := r.settings.Values.Get(context.Background(), settings.SettingRouting)
	if err != nil || r.byMode[mode] == nil {
		r.log.Warn("routing cannot be read, using that of the start", "mode", mode, "err", err)
		mode = r.start
	}
	return r.byMode[mode].Route(facts)
}

func unavailable(servers *mcp.Client) []search.Unavailable {
	var down []search.Unavailable
	for _, s := range servers.Status() {
		if s.Problem != "" {
			down = append(down, search.Unavailable{Name: s.Group, Reason: s.Problem})
		}
	}
	return down
}
