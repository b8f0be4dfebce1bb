package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"google.golang.org/api/googleapi"
)

// postJSON sends a body as it is and returns the answer as it is, nil where it is
// empty. The types of the client library leave out what is false or 0 and what they
// do not know, which in a batch of updates can be what matters.
func (c *Conn) postJSON(ctx context.Context, address string, body any) (json.RawMessage, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := googleapi.CheckResponse(resp); err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	answer = bytes.TrimSpace(answer)
	if len(answer) > 0 && !json.Valid(answer) {
		return nil, fmt.Errorf("the answer of %s is no JSON", req.URL.Host)
	}
	return answer, nil
}

// BatchUpdate applies updates to a document, presentation or spreadsheet at an address
// and returns the answer as it is. Where Google answers nothing, the result is the id
// under its name and no replies.
func (c *Conn) BatchUpdate(ctx context.Context, address, name, id string, updates ...any) (any, error) {
	answer, err := c.postJSON(ctx, address+url.PathEscape(id)+":batchUpdate", map[string]any{"requests": updates})
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return map[string]any{name: id, "replies": []any{}}, nil
	}
	return answer, nil
}

// Updates are updates as the model wrote them. There is at least one: Google does not
// accept a list of nothing.
func Updates(requests []json.RawMessage) ([]any, error) {
	if len(requests) == 0 {
		return nil, Invalidf("'requests' is empty")
	}
	out := make([]any, len(requests))
	for i, r := range requests {
		out[i] = r
	}
	return out, nil
}
