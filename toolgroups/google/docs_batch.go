package google

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/api/googleapi"
)

// postJSON sends a body as it is and returns the answer as it is, nil where it is
// empty. The types of the client library leave out what is false or 0 and what they
// do not know, which in a batch of updates can be what matters.
func (c *conn) postJSON(ctx context.Context, address string, body any) (json.RawMessage, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.client.Do(req)
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

// batch is a list of updates, for documents, presentations and spreadsheets.
type batch struct {
	Requests []any `json:"requests"`
}

// newBatch refuses a list of nothing, which Google would not accept.
func newBatch(requests []json.RawMessage) (batch, error) {
	if len(requests) == 0 {
		return batch{}, invalidf("'requests' is empty")
	}
	out := make([]any, len(requests))
	for i, r := range requests {
		out[i] = r
	}
	return batch{out}, nil
}
