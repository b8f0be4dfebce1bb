package openai

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"oneclaw/agent/provider"
)

// CurrentFacts calls [Client.RefreshFacts] and returns all that is known about the model.
func (c *Client) CurrentFacts(ctx context.Context) (provider.Facts, error) {
	err := c.RefreshFacts(ctx)
	return c.Facts(), err
}

// RefreshFacts asks the provider what the model can do, unless it was asked recently. OpenRouter, Groq,
// Mistral, vLLM, Kimi and LM Studio report this in their list of models; Gemini, Ollama and llama.cpp
// have their own endpoints for it; the others do not report it. An error is returned if the provider
// could not be asked; the other sources of [Client.Facts] still apply.
func (c *Client) RefreshFacts(ctx context.Context) error {
	return c.cfg.ModelCache.Refresh(ctx, c.origin, c.fetchFacts)
}

// fetchFacts asks the server for its list of models, and a local server whose list has no context size at
// its own endpoints. It asks Gemini at Google's own API.
func (c *Client) fetchFacts(ctx context.Context) (provider.Facts, error) {
	if c.cfg.Dialect == DialectGemini {
		return c.askGemini(ctx)
	}
	models, err := c.listModels(ctx)
	told := c.findModel(models)
	if told.ContextTokens.From != "" || !isLocal(c.url) {
		return told, err
	}
	for _, ask := range []func(context.Context, string) (provider.Facts, bool){c.askOllama, c.askLMStudio, c.askLlama} {
		if more, ok := ask(ctx, strings.TrimSuffix(c.cfg.BaseURL, "/v1")); ok {
			return more.Or(told), nil
		}
	}
	return told, err
}

// findModel returns the facts about the model in a list; none if it is not listed.
func (c *Client) findModel(models []ModelInfo) provider.Facts {
	name := strings.TrimPrefix(c.cfg.Model, "models/")
	if i := slices.IndexFunc(models, func(m ModelInfo) bool { return m.ID == name }); i >= 0 {
		return models[i].Facts
	}
	return provider.Facts{}
}

// fetchJSON fetches JSON from an address and decodes it. A body that is not nil is sent as JSON.
func (c *Client) fetchJSON(ctx context.Context, address string, body, into any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	data, err := c.fetch(ctx, address, raw)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// askGemini asks Google's own API (ai.google.dev/api/models).
func (c *Client) askGemini(ctx context.Context) (provider.Facts, error) {
	var page struct {
		Input    float64  `json:"inputTokenLimit"`
		Output   float64  `json:"outputTokenLimit"`
		Thinking *bool    `json:"thinking"`
		Methods  []string `json:"supportedGenerationMethods"`
	}
	address := strings.TrimSuffix(c.cfg.BaseURL, "/openai") + "/models/" + url.PathEscape(strings.TrimPrefix(c.cfg.Model, "models/"))
	if err := c.fetchJSON(ctx, address, nil, &page); err != nil {
		return provider.Facts{}, err
	}
	f := provider.Facts{ContextTokens: provider.NewNumber(page.Input, provider.FromServer), OutputTokens: provider.NewNumber(page.Output, provider.FromServer)}
	if page.Thinking != nil {
		f.Reasons = provider.NewAbility(*page.Thinking, provider.FromServer)
	}
	if slices.Contains(page.Methods, "createCachedContent") {
		f.Caches = provider.NewAbility(true, provider.FromServer)
	}
	return f, nil
}

// askOllama asks Ollama what a model can do, and with which context size it is loaded. Ollama silently
// cuts longer prompts (docs.ollama.com/api, docs.ollama.com/context-length).
func (c *Client) askOllama(ctx context.Context, root string) (provider.Facts, bool) {
	var shown struct {
		Capabilities []string `json:"capabilities"`
	}
	if err := c.fetchJSON(ctx, root+"/api/show", map[string]string{"model": c.cfg.Model}, &shown); err != nil || len(shown.Capabilities) == 0 {
		return provider.Facts{}, false
	}
	has := func(what string) provider.Ability {
		return provider.NewAbility(slices.Contains(shown.Capabilities, what), provider.FromServer)
	}
	f := provider.Facts{Sees: has("vision"), Hears: has("audio"), Reasons: has("thinking"), Tools: has("tools"), TruncatesSilently: true}
	var running struct {
		Models []struct {
			Name    string  `json:"name"`
			Context float64 `json:"context_length"`
		} `json:"models"`
	}
	if c.fetchJSON(ctx, root+"/api/ps", nil, &running) == nil {
		for _, m := range running.Models {
			if m.Name == c.cfg.Model || m.Name == c.cfg.Model+":latest" {
				f.ContextTokens = provider.NewNumber(m.Context, provider.FromServer)
			}
		}
	}
	return f, true
}

// askLMStudio asks for LM Studio's own list, which has the context size of loaded models.
func (c *Client) askLMStudio(ctx context.Context, root string) (provider.Facts, bool) {
	data, err := c.fetch(ctx, root+"/api/v0/models", nil)
	if err != nil {
		return provider.Facts{}, false
	}
	models, err := decodeModels(data)
	return c.findModel(models), err == nil
}

// askLlama asks a llama.cpp server for its properties (tools/server/README.md).
func (c *Client) askLlama(ctx context.Context, root string) (provider.Facts, bool) {
	var props struct {
		Default struct {
			Context float64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Modalities *struct{ Vision, Audio bool } `json:"modalities"`
	}
	if c.fetchJSON(ctx, root+"/props", nil, &props) != nil || props.Default.Context == 0 {
		return provider.Facts{}, false
	}
	f := provider.Facts{ContextTokens: provider.NewNumber(props.Default.Context, provider.FromServer)}
	if m := props.Modalities; m != nil {
		f.Sees, f.Hears = provider.NewAbility(m.Vision, provider.FromServer), provider.NewAbility(m.Audio, provider.FromServer)
	}
	return f, true
}
