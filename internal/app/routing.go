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

// modeRouter has a router for each mode and uses the one selected in the current settings.
type modeRouter struct {
	settings  *settings.Settings
	byMode    map[string]*search.Router
	startMode string
	log       *slog.Logger
}

func newModeRouter(cfg config.Config, s *settings.Settings, m *models.Models, servers *mcp.Client, log *slog.Logger) (*modeRouter, error) {
	for _, warning := range cfg.Tools.ToolSearch.Warnings {
		log.Warn("setting tools.tool_search", "warning", warning)
	}
	if said := cfg.ToolSearchNote(); said != "" {
		log.Info("setting tools.tool_search", "routing", cfg.Tools.Routing, "effect", said)
	}
	r := &modeRouter{settings: s, byMode: map[string]*search.Router{}, startMode: cfg.Tools.Routing, log: log}
	ranker, err := m.Ranker(cfg.Tools.ToolSearch.EmbeddingModel)
	if err != nil {
		return nil, err
	}
	for _, mode := range search.Routings() {
		router, err := search.NewRouter(search.RouterConfig{
			Routing: mode, Config: cfg.Tools.ToolSearch, Prices: CachePrices(cfg),
			Unavailable: func() []search.UnavailableSource { return unavailableServers(servers) }, Ranker: ranker, Logger: log,
		})
		if err != nil {
			return nil, fmt.Errorf("routing of tools: %w", err)
		}
		r.byMode[string(mode)] = router
	}
	return r, nil
}

// CachePrices returns a function that returns the cache prices of a model. They are derived from the
// model's token prices or, if these are unknown, those of a similar model. Without either, a cached token
// costs as much as another.
func CachePrices(cfg config.Config) func(model string) search.Prices {
	table := budget.KnownPrices().With(cfg.Prices)
	return func(model string) search.Prices {
		prices := search.Prices{Write: 1, Read: 1}
		p := table.LookupSimilar(model)
		if p.Input > 0 && p.CachedInput > 0 {
			prices.Read = p.CachedInput / p.Input
			prices.Write = cmp.Or(p.CacheWrite, p.Input) / p.Input
			prices.MinTokens, prices.MaxAge = budget.MinCacheable(model), budget.CacheTTL(model)
		}
		return prices
	}
}

// Route implements toolgroups.Router.
func (r *modeRouter) Route(facts toolgroups.RouteInput) toolgroups.Route {
	mode, err := r.settings.Values.Get(context.Background(), settings.SettingRouting)
	if err != nil || r.byMode[mode] == nil {
		r.log.Warn("cannot read the routing setting, using the configured one", "mode", mode, "err", err)
		mode = r.startMode
	}
	return r.byMode[mode].Route(facts)
}

func unavailableServers(servers *mcp.Client) []search.UnavailableSource {
	var down []search.UnavailableSource
	for _, s := range servers.Status() {
		if s.Problem != "" {
			down = append(down, search.UnavailableSource{Name: s.Group, Reason: s.Problem})
		}
	}
	return down
}
