package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"oneclaw/agent/provider"
)

// The subset of the Messages API that we use (platform.claude.com/docs/en/api/messages, 2026-11).
// ARCHITECTURE.md explains why the official library is not used.

// apiVersion is the version of the API.
const apiVersion = "2023-06-01"

// request is a request for a message.
type request struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	Stream       bool          `json:"stream"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
	Thinking     *thinking     `json:"thinking,omitempty"`
	Temperature  *float64      `json:"temperature,omitempty"`
	Tools        []tool        `json:"tools,omitempty"`
	System       []content     `json:"system,omitempty"`
	Messages     []message     `json:"messages"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens,omitempty"`
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Schema       json.RawMessage `json:"input_schema,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

// cacheControl is a cache breakpoint: the provider caches the prompt up to it.
type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

type message struct {
	Role    string    `json:"role"`
	Content []content `json:"content"`
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// content is a block of a message. Which fields are set depends on its type.
type content struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// Source is set in a picture.
	Source *source `json:"source,omitempty"`
	// ID, Name and Input are set in a call, the next three in its result.
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	Content      []content       `json:"content,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`

	// raw, if not nil, is a whole block that is sent back unchanged.
	raw json.RawMessage
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"` // encoded as base64 in JSON
}

// MarshalJSON writes the block.
func (c content) MarshalJSON() ([]byte, error) {
	if c.raw != nil {
		return c.raw, nil
	}
	type fields content
	return encodeJSON(fields(c))
}

// encodeJSON returns JSON that does not escape < and >.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// send sends a request to a path of the server, as GET if there is no body.
func (c *Client) send(ctx context.Context, path string, body []byte) (*http.Response, error) {
	header := http.Header{}
	header.Set("Anthropic-Version", apiVersion)
	header.Set("X-Api-Key", c.cfg.APIKey)
	return provider.Send(ctx, c.cfg.HTTPClient, c.cfg.BaseURL+path, body, header)
}

// fetchFacts returns the server's description of the model. Missing fields stay unknown.
func (c *Client) fetchFacts(ctx context.Context) (provider.Facts, error) {
	resp, err := c.send(ctx, "/v1/models/"+url.PathEscape(c.cfg.Model), nil)
	if err != nil {
		return provider.Facts{}, provider.NewFault(ctx, err, c.cfg.APIKey).Failure
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(provider.LimitBody(resp.Body, func() {}))
	if err != nil {
		return provider.Facts{}, provider.NewFault(ctx, err, c.cfg.APIKey).Failure
	}
	return decodeFacts(raw), nil
}
