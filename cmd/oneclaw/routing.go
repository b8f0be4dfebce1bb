package main

import (
	"fmt"
	"log/slog"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/search"
)

// newRouter makes what decides which tools stand in a request.
func newRouter(cfg Config, servers *mcp.Client, log *slog.Logger) (toolgroups.Router, error) {
	for _, warning := range cfg.Tools.ToolSearch.Warnings {
		log.Warn("setting tools.tool_search", "warning", warning)
	}
	router, err := search.NewRouter(search.RouterConfig{
		Routing: search.Routing(cfg.Tools.Routing), Config: cfg.Tools.ToolSearch, Prices: search.DefaultPrices(),
		Unavailable: func() []search.Unavailable { return unavailable(servers) }, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("routing of tools: %w", err)
	}
	return router, nil
}

// unavailable names the MCP servers that can not be reached now.
func unavailable(servers *mcp.Client) []search.Unavailable {
	var down []search.Unavailable
	for _, s := range servers.Status() {
		if s.Problem != "" {
			down = append(down, search.Unavailable{Name: s.Group, Reason: s.Problem})
		}
	}
	return down
}
