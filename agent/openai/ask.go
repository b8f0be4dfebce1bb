package openai

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"oneclaw/agent/provider"
)

// Ask calls [Client.Learn] and returns all that is known of the model.
func (c *Client) Ask(ctx context.Context) (provider.Facts, error) {
	err := c.Learn(ctx)
	return c.Facts(), err
}

// Learn asks the provider what the model can do, unless it has lately. OpenRouter, Groq, Mistral, vLLM,
// Kimi and LM Studio report it in a list, Gemini, Ollama and llama.cpp at addresses of their own, the
// others not at all. The error says why the provider could not be asked; other sources of
// [Client.Facts] still apply.
func (c *Client) Learn(ctx context.Context) error {
	return c.cfg.Known.Ask(ctx, c.origin, c.ask)
}

// ask tries one address after the other.
func (c *Client) ask(ctx context.Context) (provider.Facts, error) {
	if c.cfg.Dialect == DialectGemini {
		return c.askGemini(ctx)
	}
	models, err := c.list(ctx)
	told := c.pick(models)
	if told.Context.From != "" || !nearby(c.url) {
		return told, err
	}
	for _, ask := range []func(context.Context, string) (provider.Facts, bool){c.askOllama, c.askLMStudio, c.askLlama} {
		if more, ok := ask(ctx, strings.TrimSuffix(c.cfg.BaseURL, "/v1")); ok {
			return more.Or(told), nil
		}
	}
	return told, err
}

// pick returns what a list says of the model.
func (c *Client) pick(models []ModelInfo) provider.Facts {
	name := strings.TrimPrefix(c.cfg.Model, "models/")
	if i := slices.IndexFunc(models, func(m ModelInfo) bool { return m.ID == name }); i >= 0 {
		return models[i].Facts
	}
	return provider.Facts{}
}

// document fetches and decodes the JSON at an address.
func (c *Client) document(ctx context.Context, address string, body, into any) error {
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

// askGemini reads a page of Google's own API (ai.google.dev/api/models).
func (c *Client) askGemini(ctx context.Context) (provider.Facts, error) {
	var page struct {
		Input    float64  `json:"inputTokenLimit"`
		Output   float64  `json:"outputTokenLimit"`
		Thinking *bool    `json:"thinking"`
		Methods  []string `json:"supportedGenerationMethods"`
	}
	address := strings.TrimSuffix(c.cfg.BaseURL, "/openai") + "/models/" + url.PathEscape(strings.TrimPrefix(c.cfg.Model, "models/"))
	if err := c.document(ctx, address, nil, &page); err != nil {
		return provider.Facts{}, err
	}
	f := provider.Facts{Context: provider.NewNumber(page.Input, provider.FromServer), Output: provider.NewNumber(page.Output, provider.FromServer)}
	if page.Thinking != nil {
		f.Reasons = provider.NewCan(*page.Thinking, provider.FromServer)
	}
	if slices.Contains(page.Methods, "createCachedContent") {
		f.Caches = provider.NewCan(true, provider.FromServer)
	}
	return f, nil
}

// askOllama asks what a model can do, and with which context it is loaded: longer prompts are cut
// silently (docs.ollama.com/api, docs.ollama.com/context-length).
func (c *Client) askOllama(ctx context.Context, root string) (provider.Facts, bool) {
	var shown struct {
		Capabilities []string `json:"capabilities"`
	}
	if err := c.document(ctx, root+"/api/show", map[string]string{"model": c.cfg.Model}, &shown); err != nil || len(shown.Capabilities) == 0 {
		return provider.Facts{}, false
	}
	has := func(what string) provider.Can {
		return provider.NewCan(slices.Contains(shown.Capabilities, what), provider.FromServer)
	}
	f := provider.Facts{Sees: has("vision"), Hears: has("audio"), Reasons: has("thinking"), Cuts: true}
	var running struct {
		Models []struct {
			Name    string  `json:"name"`
			Context float64 `json:"context_length"`
		} `json:"models"`
	}
	if c.document(ctx, root+"/api/ps", nil, &running) == nil {
		for _, m := range running.Models {
			if m.Name == c.cfg.Model || m.Name == c.cfg.Model+":latest" {
				f.Context = provider.NewNumber(m.Context, provider.FromServer)
			}
		}
	}
	return f, true
}

// askLMStudio reads LM Studio's own list, which has the context with which a model is loaded.
func (c *Client) askLMStudio(ctx context.Context, root string) (provider.Facts, bool) {
	data, err := c.fetch(ctx, root+"/api/v0/models", nil)
	if err != nil {
		return provider.Facts{}, false
	}
	models, err := decodeModels(data)
	return c.pick(models), err == nil
}

// askLlama reads the properties of a llama.cpp server (tools/server/README.md).
func (c *Client) askLlama(ctx context.Context, root string) (provider.Facts, bool) {
	var props struct {
		Default struct {
			Context float64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Modalities *struct{ Vision, Audio bool } `json:"modalities"`
	}
	if c.document(ctx, root+"/props", nil, &props) != nil || props.Default.Context == 0 {
		return provider.Facts{}, false
	}
	f := provider.Facts{Context: provider.NewNumber(props.Default.Context, provider.FromServer)}
	if m := props.Modalities; m != nil {
		f.Sees, f.Hears = provider.NewCan(m.Vision, provider.FromServer), provider.NewCan(m.Audio, provider.FromServer)
	}
	return f, true
}
