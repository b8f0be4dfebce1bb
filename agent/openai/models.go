package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// Bounds of a list of models.
const (
	maxModelList   = 8 << 20
	maxModelNumber = 5000
	listTimeout    = 25 * time.Second
)

// anthropicVersion is the version for the list of models, the one request that Anthropic's server does
// not take in OpenAI's form.
const anthropicVersion = "2023-06-01"

// ModelInfo is a model that a server offers.
type ModelInfo struct {
	ID   string
	Name string
	// ContextTokens is the size of its context; 0 if the server does not say.
	ContextTokens int
	// Facts holds the server's other statements about it.
	Facts provider.Facts
}

// ListModels asks a server which models it offers. It does not use the model in cfg. The text of an
// error says what is wrong and holds no secret and nothing that the server sent.
func ListModels(ctx context.Context, cfg Config) ([]ModelInfo, error) {
	cfg.Model = cmp.Or(cfg.Model, "any")
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithTimeout(ctx, listTimeout)
	defer end()
	return c.list(ctx)
}

// list fetches the list of models.
func (c *Client) list(ctx context.Context) ([]ModelInfo, error) {
	path := "/models"
	if c.cfg.Dialect == DialectAnthropic {
		path += "?limit=1000"
	}
	data, err := c.fetch(ctx, c.cfg.BaseURL+path, nil)
	if err != nil {
		return nil, err
	}
	models, err := decodeModels(data)
	if err != nil {
		return nil, &agent.ModelError{Kind: agent.KindUnavailable, Err: err}
	}
	return models, nil
}

// fetch fetches a document about models. The text of an error holds nothing that the server sent.
func (c *Client) fetch(ctx context.Context, address string, body []byte) ([]byte, error) {
	resp, err := c.send(ctx, address, body)
	if err != nil {
		if refused, ok := errors.AsType[*provider.Refusal](err); ok {
			refused.Code, refused.Text = "", "no list of models"
		}
		return nil, c.judge(ctx, err).Failure
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxModelList+1))
	if err != nil || len(data) > maxModelList {
		return nil, &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("the list of models broke off or is too large")}
	}
	return data, nil
}

// listed is a model of a list, with the field names of several servers: OpenRouter, Groq, vLLM,
// Anthropic, Mistral, LM Studio, Kimi.
type listed struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Type        string `json:"type"`

	Loaded        float64 `json:"loaded_context_length"`
	ContextLength float64 `json:"context_length"`
	ContextWindow float64 `json:"context_window"`
	MaxModelLen   float64 `json:"max_model_len"`
	MaxInput      float64 `json:"max_input_tokens"`
	MaxContext    float64 `json:"max_context_length"`
	MaxCompletion float64 `json:"max_completion_tokens"`
	TopProvider   struct {
		MaxCompletion float64 `json:"max_completion_tokens"`
	} `json:"top_provider"`

	Architecture struct {
		Input []string `json:"input_modalities"`
	} `json:"architecture"`
	// Capabilities is an object (Mistral) or a list (LM Studio).
	Capabilities json.RawMessage `json:"capabilities"`
	Parameters   []string        `json:"supported_parameters"`
	ImageIn      *bool           `json:"supports_image_in"`
	Reasoning    *bool           `json:"supports_reasoning"`
	Pricing      struct {
		CacheRead json.RawMessage `json:"input_cache_read"`
	} `json:"pricing"`
}

// facts returns the facts in a list's entry.
func (m *listed) facts() provider.Facts {
	f := provider.Facts{
		Context: provider.NewNumber(cmp.Or(m.Loaded, m.ContextLength, m.ContextWindow, m.MaxModelLen, m.MaxInput, m.MaxContext), provider.FromServer),
		Output:  provider.NewNumber(cmp.Or(m.MaxCompletion, m.TopProvider.MaxCompletion), provider.FromServer),
	}
	if in := m.Architecture.Input; len(in) > 0 {
		f.Sees, f.Hears = provider.NewCan(slices.Contains(in, "image"), provider.FromServer), provider.NewCan(slices.Contains(in, "audio"), provider.FromServer)
	}
	var able struct{ Vision, Reasoning, Audio *bool }
	_ = json.Unmarshal(m.Capabilities, &able) // fails for a list
	tell := func(c *provider.Can, says ...*bool) {
		for _, v := range says {
			if v != nil {
				*c = provider.NewCan(*v, provider.FromServer)
			}
		}
	}
	tell(&f.Sees, m.ImageIn, able.Vision)
	tell(&f.Hears, able.Audio)
	tell(&f.Reasons, m.Reasoning, able.Reasoning)
	if m.Type == "vlm" || m.Type == "llm" {
		f.Sees = provider.NewCan(m.Type == "vlm", provider.FromServer)
	}
	if len(m.Parameters) > 0 {
		f.Reasons = provider.NewCan(slices.Contains(m.Parameters, "reasoning"), provider.FromServer)
	}
	if provider.Present(m.Pricing.CacheRead) {
		f.Caches = provider.NewCan(true, provider.FromServer)
	}
	return f
}

// decodeModels decodes a list.
func decodeModels(data []byte) ([]ModelInfo, error) {
	var list struct {
		Data []listed `json:"data"`
	}
	if json.Unmarshal(data, &list) != nil || list.Data == nil {
		return nil, errors.New("the answer is no list of models")
	}
	var models []ModelInfo
	for _, m := range list.Data {
		id := strings.TrimPrefix(m.ID, "models/")
		if id == "" {
			continue
		}
		if len(models) == maxModelNumber {
			break
		}
		facts := m.facts()
		models = append(models, ModelInfo{ID: id, Name: cmp.Or(m.DisplayName, m.Name), ContextTokens: facts.Context.Value, Facts: facts})
	}
	return models, nil
}
