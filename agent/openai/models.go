package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"oneclaw/agent"
)

// Bounds of a list of models.
const (
	maxModelList   = 8 << 20
	maxModelNumber = 5000
	listTimeout    = 25 * time.Second
)

// anthropicVersion is the version of the one request that Anthropic's server does not
// take in OpenAI's form.
const anthropicVersion = "2023-06-01"

// ModelInfo is a model that a server offers.
type ModelInfo struct {
	ID   string
	Name string
	// ContextTokens is the size of its context; 0 where the server does not say.
	ContextTokens int
}

// ListModels asks a server which models it offers. Of the configuration the model is
// not needed. The text of an error says what the matter is and holds no secret and
// nothing that the server sent.
func ListModels(ctx context.Context, cfg Config) ([]ModelInfo, error) {
	cfg.Model = cmp.Or(cfg.Model, "any")
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithTimeout(ctx, listTimeout)
	defer end()
	path := "/models"
	if c.cfg.Dialect == DialectAnthropic {
		path += "?limit=1000"
	}
	resp, err := c.send(ctx, path, nil)
	if err != nil {
		if refused, ok := errors.AsType[*serverError](err); ok {
			refused.code, refused.text = "", "no list of models"
		}
		return nil, c.judge(ctx, err).failure
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxModelList+1))
	if err != nil || len(data) > maxModelList {
		return nil, &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("the list of models broke off or is too large")}
	}
	models, err := decodeModels(data)
	if err != nil {
		return nil, &agent.ModelError{Kind: agent.KindUnavailable, Err: err}
	}
	return models, nil
}

// decodeModels reads a list, in whose entries servers have names of their own for the
// size of the context.
func decodeModels(data []byte) ([]ModelInfo, error) {
	var list struct {
		Data []struct {
			ID            string  `json:"id"`
			Name          string  `json:"name"`
			DisplayName   string  `json:"display_name"`
			ContextLength float64 `json:"context_length"`
			ContextWindow float64 `json:"context_window"`
			MaxModelLen   float64 `json:"max_model_len"`
			MaxInput      float64 `json:"max_input_tokens"`
		} `json:"data"`
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
		size := max(cmp.Or(m.ContextLength, m.ContextWindow, m.MaxModelLen, m.MaxInput), 0)
		models = append(models, ModelInfo{ID: id, Name: cmp.Or(m.DisplayName, m.Name), ContextTokens: int(min(size, 1e9))})
	}
	return models, nil
}
