package models

import (
	"context"
	"fmt"

	"oneclaw/agent/openai"
	"oneclaw/internal/settings"
	"oneclaw/toolgroups/search"
)

// Embedder returns an embedder that uses a model, named as provider_id/model_id; nil if name is empty.
func (m *Models) Embedder(name string) (search.Embedder, error) {
	if name == "" {
		return nil, nil
	}
	ref, err := settings.ParseRef(name)
	if err != nil {
		return nil, fmt.Errorf("tools.tool_search.embeddings: %w", err)
	}
	return embedder{m, ref}, nil
}

// embedder implements search.Embedder with a provider's model. It reads the provider on every call.
type embedder struct {
	models *Models
	ref    settings.Ref
}

// Embed implements search.Embedder.
func (e embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	provider, err := e.models.Settings.Providers.Get(ctx, e.ref.Provider)
	if err != nil {
		return nil, fmt.Errorf("find the provider of embeddings: %w", err)
	}
	cfg, err := e.models.clientConfig(ctx, provider)
	if err != nil {
		return nil, err
	}
	cfg.Model = e.ref.Model
	client, err := openai.New(cfg)
	if err != nil {
		return nil, err
	}
	return client.Embed(ctx, texts)
}
