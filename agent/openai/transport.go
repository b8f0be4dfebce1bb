package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"

	api "github.com/sashabaranov/go-openai"
)

// maxErrorBody is how much of an error page is read.
const maxErrorBody = 64 << 10

// send sends a request, one without a body as GET, and returns the answer. An answer
// that is none is a *[serverError].
func (c *Client) send(ctx context.Context, path string, body []byte) (*http.Response, error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, c.cfg.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	if body == nil && c.cfg.Dialect == DialectAnthropic {
		req.Header.Set("X-Api-Key", c.cfg.APIKey)
		req.Header.Set("Anthropic-Version", anthropicVersion)
	} else if c.cfg.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.APIKey)
	}
	resp, err := c.cfg.HTTPClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	page, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // as far as it came
	refused := &serverError{status: resp.StatusCode, wait: retryAfter(resp.Header), text: string(page)}
	var told api.ErrorResponse
	if json.Unmarshal(page, &told) == nil && told.Error != nil {
		refused.code, refused.text = codeOf(told.Error), told.Error.Message
	}
	return nil, refused
}

// events gives the events of a reply to add until it returns an error; a reply that is
// not streamed is one. The end of the reply is io.EOF.
func events(resp *http.Response, add func(raw []byte) error) error {
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && kind == "application/json" {
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			return fmt.Errorf("read the reply: %w", err)
		}
		if err := add(raw); err != nil {
			return err
		}
		return io.EOF
	}
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		event, some := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		event = bytes.TrimSpace(event)
		switch {
		case string(event) == "[DONE]":
			return io.EOF
		case !some && !bytes.HasPrefix(event, []byte("{")), len(event) == 0:
			continue // A comment, a name, or an empty line; an error may come bare.
		}
		if err := add(event); err != nil {
			return err
		}
	}
}

// limited is a body that ends, with errTooLarge, behind a number of bytes.
type limited struct {
	io.ReadCloser
	left  int
	alive func() // called whenever something arrives
}

// Read reads at most what is left.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	if n > 0 {
		l.alive()
	}
	return n, err
}

// retryAfter is how long the server asks to wait; 0 if it does not say.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return seconds(ms / 1000)
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return seconds(s)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// seconds is a duration from outside, between 0 and a day.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) || s < 0 {
		return 0
	}
	return time.Duration(min(s, 24*60*60) * float64(time.Second))
}
