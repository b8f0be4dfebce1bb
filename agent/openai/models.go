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
	maxModelList = 8 << 20
	maxModels    = 5000
	listTimeout  = 25 * time.Second
)

// anthropicVersion is the API version sent with requests for the list of models, which Anthropic's
// server accepts only in its own format.
const anthropicVersion = "2023-06-01"

// ModelInfo is a model that a server offers.
type ModelInfo struct {
	ID   string
	Name string
	// ContextTokens is the size of its context; 0 if the server does not say.
	ContextTokens int
	// Facts holds everything that the server reports about the model.
	Facts provider.Facts
}

// NoListError is wrapped by the error of a server that refuses to list its models. Its text contains nothing that
// the server sent.
type NoListError struct {
	// Said is the beginning of the server's text, without the key. It is for operators.
	Said string
}

// Error returns a text without that of the server.
func (e *NoListError) Error() string { return "no list of models" }

// ListModels asks a server which models it offers. It ignores the model in cfg. The text of an error
// contains no secret and nothing that the server sent.
func ListModels(ctx context.Context, cfg Config) ([]ModelInfo, error) {
	cfg.Model = cmp.Or(cfg.Model, "any")
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return c.listModels(ctx)
}

// listModels fetches the list of models.
func (c *Client) listModels(ctx context.Context) ([]ModelInfo, error) {
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

// fetch fetches a document about models. The text of an error contains nothing that the server sent.
func (c *Client) fetch(ctx context.Context, address string, body []byte) ([]byte, error) {
	resp, err := c.send(ctx, address, body)
	if err != nil {
		failure := c.newFault(ctx, err).Failure // classified by the text that is dropped
		if _, ok := errors.AsType[*provider.Refusal](err); ok {
			failure.Err = &NoListError{Said: failure.Err.Error()}
		}
		return nil, failure
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxModelList+1))
	if err != nil || len(data) > maxModelList {
		return nil, &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("the list of models was cut off or is too large")}
	}
	return data, nil
}

// modelEntry is an entry in a list of models, with the field names of several servers: OpenRouter, Groq,
// vLLM, Anthropic, Mistral, LM Studio, Kimi.
type modelEntry struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Type        string `json:"type"`

	LoadedContextLength float64 `json:"loaded_context_length"`
	ContextLength       float64 `json:"context_length"`
	ContextWindow       float64 `json:"context_window"`
	MaxModelLen         float64 `json:"max_model_len"`
	MaxInputTokens      float64 `json:"max_input_tokens"`
	MaxContextLength    float64 `json:"max_context_length"`
	MaxCompletionTokens float64 `json:"max_completion_tokens"`
	TopProvider         struct {
		MaxCompletionTokens float64 `json:"max_completion_tokens"`
	} `json:"top_provider"`

	Architecture struct {
		InputModalities []string `json:"input_modalities"`
	} `json:"architecture"`
	// Capabilities is an object (Mistral) or a list (LM Studio).
	Capabilities        json.RawMessage `json:"capabilities"`
	SupportedParameters []string        `json:"supported_parameters"`
	SupportsImageIn     *bool           `json:"supports_image_in"`
	SupportsReasoning   *bool           `json:"supports_reasoning"`
	Pricing             struct {
		InputCacheRead json.RawMessage `json:"input_cache_read"`
	} `json:"pricing"`
}

// facts returns the entry as facts.
func (m *modelEntry) facts() provider.Facts {
	f := provider.Facts{
		ContextTokens: provider.NewNumber(cmp.Or(m.LoadedContextLength, m.ContextLength, m.ContextWindow, m.MaxModelLen, m.MaxInputTokens, m.MaxContextLength), provider.FromServer),
		OutputTokens:  provider.NewNumber(cmp.Or(m.MaxCompletionTokens, m.TopProvider.MaxCompletionTokens), provider.FromServer),
	}
	if in := m.Architecture.InputModalities; len(in) > 0 {
		f.Sees, f.Hears = provider.NewAbility(slices.Contains(in, "image"), provider.FromServer), provider.NewAbility(slices.Contains(in, "audio"), provider.FromServer)
	}
	var able struct{ Vision, Reasoning, Audio *bool }
	_ = json.Unmarshal(m.Capabilities, &able) // fails for a list
	tell := func(c *provider.Ability, says ...*bool) {
		for _, v := range says {
			if v != nil {
				*c = provider.NewAbility(*v, provider.FromServer)
			}
		}
	}
	tell(&f.Sees, m.SupportsImageIn, able.Vision)
	tell(&f.Hears, able.Audio)
	tell(&f.Reasons, m.SupportsReasoning, able.Reasoning)
	if m.Type == "vlm" || m.Type == "llm" {
		f.Sees = provider.NewAbility(m.Type == "vlm", provider.FromServer)
	}
	if len(m.SupportedParameters) > 0 {
		f.Reasons = provider.NewAbility(slices.Contains(m.SupportedParameters, "reasoning"), provider.FromServer)
	}
	if provider.IsPresent(m.Pricing.InputCacheRead) {
		f.Caches = provider.NewAbility(true, provider.FromServer)
	}
	return f
}

// decodeModels decodes a list of models.
func decodeModels(data []byte) ([]ModelInfo, error) {
	var list struct {
		Data []modelEntry `json:"data"`
	}
	if json.Unmarshal(data, &list) != nil || list.Data == nil {
		return nil, errors.New("the response is not a list of models")
	}
	var models []ModelInfo
	for _, m := range list.Data {
		id := strings.TrimPrefix(m.ID, "models/")
		if id == "" {
			continue
		}
		if len(models) == maxModels {
			break
		}
		facts := m.facts()
		models = append(models, ModelInfo{ID: id, Name: cmp.Or(m.DisplayName, m.Name), ContextTokens: facts.ContextTokens.Value, Facts: facts})
	}
	return models, nil
}
