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

// BatchUpdate applies updates to a document, presentation or spreadsheet and returns the response. If
// the response is empty, it returns the id under the given name. It sends the updates unchanged: the
// types of the client library would drop false, 0 and unknown fields.
func BatchUpdate[T any](ctx context.Context, c *Conn, address, name, id string, updates ...T) (any, error) {
	if len(updates) == 0 {
		return nil, Invalidf("'requests' is empty") // Google rejects an empty list
	}
	data, err := json.Marshal(map[string]any{"requests": updates})
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+url.PathEscape(id)+":batchUpdate", bytes.NewReader(data))
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
		return nil, fmt.Errorf("read the response: %w", err)
	}
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 {
		return map[string]any{name: id, "replies": []any{}}, nil
	}
	if !json.Valid(answer) {
		return nil, fmt.Errorf("the response from %s is not JSON", req.URL.Host)
	}
	return json.RawMessage(answer), nil
}
