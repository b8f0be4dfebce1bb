package app

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"oneclaw/internal/config"
	"oneclaw/internal/models"
	"oneclaw/internal/settings"
	"oneclaw/storage"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/search"
)

// newRouter makes the router that follows the current setting of the routing.
func newRouter(cfg config.Config, s *settings.Settings, m *models.Models, servers *mcp.Client, log *slog.Logger) (*search.Router, error) {
	for _, warning := range cfg.Tools.ToolSearch.Warnings {
		log.Warn("setting tools.tool_search", "warning", warning)
	}
	if said := cfg.ToolSearchNote(); said != "" {
		log.Info("setting tools.tool_search", "routing", cfg.Tools.Routing, "effect", said)
	}
	embedder, err := m.Embedder(cfg.Tools.ToolSearch.EmbeddingModel)
	if err != nil {
		return nil, err
	}
	return search.NewRouter(search.RouterConfig{
		Current: func() search.Routing {
			mode, err := s.Values.Get(context.Background(), settings.SettingRouting)
			if err != nil {
				log.Warn("cannot read the routing setting, using the configured one", "err", err)
				mode = cfg.Tools.Routing
			}
			return search.Routing(mode)
		},
		Config: cfg.Tools.ToolSearch, Embedder: embedder, Logger: log,
		Unavailable: func() []search.UnavailableSource { return unavailableServers(servers) },
	})
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

// replaceRouting replaces a routing of an earlier program, which an administrator chose in a chat.
func replaceRouting(ctx context.Context, store storage.Store, log *slog.Logger) error {
	const key = "settings/value/routing"
	entry, err := storage.Find(ctx, store, key)
	if err != nil {
		return err
	}
	old := strings.Trim(string(entry.Value), `"`)
	now := search.InsteadOf(old)
	if now == "" {
		return nil
	}
	log.Info("a routing that is gone is replaced", "routing", old, "instead", string(now))
	if _, err := store.Put(ctx, key, []byte(strconv.Quote(string(now))), entry.Revision); err != nil {
		return fmt.Errorf("replace the routing: %w", err)
	}
	return nil
}
