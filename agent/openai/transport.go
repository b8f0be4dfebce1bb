package openai

import (
	"context"
	"net/http"
	"strings"

	"oneclaw/agent/provider"
)

// send sends a request to an address, as GET if body is nil, and returns the response. An error response
// is returned as a *[provider.Refusal].
func (c *Client) send(ctx context.Context, address string, body []byte) (*http.Response, error) {
	header := http.Header{}
	switch {
	case body == nil && c.cfg.Dialect == DialectAnthropic:
		header.Set("X-Api-Key", c.cfg.APIKey)
		header.Set("Anthropic-Version", anthropicVersion)
	case body == nil && c.cfg.Dialect == DialectGemini && !strings.HasPrefix(address, c.cfg.BaseURL):
		header.Set("X-Goog-Api-Key", c.cfg.APIKey)
	case c.cfg.APIKey != "":
		header.Set("Authorization", "Bearer "+c.cfg.APIKey)
	}
	return provider.Send(ctx, c.cfg.HTTPClient, address, body, header)
}

// newFault returns the fault for an attempt's error. ctx is the context of the attempt.
func (c *Client) newFault(ctx context.Context, err error) *provider.Fault {
	return provider.NewFault(ctx, err, c.cfg.APIKey)
}
