package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxErrorBody is how much of an error page is read.
const maxErrorBody = 64 << 10

// send sends a request to an address, one without a body as GET, and returns the answer.
// An answer that is none is a *[serverError].
func (c *Client) send(ctx context.Context, address string, body []byte) (*http.Response, error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	switch {
	case body == nil && c.cfg.Dialect == DialectAnthropic:
		req.Header.Set("X-Api-Key", c.cfg.APIKey)
		req.Header.Set("Anthropic-Version", anthropicVersion)
	case body == nil && c.cfg.Dialect == DialectGemini && !strings.HasPrefix(address, c.cfg.BaseURL):
		req.Header.Set("X-Goog-Api-Key", c.cfg.APIKey)
	case c.cfg.APIKey != "":
		req.Header.Set("Authorization", "Bearer "+c.cfg.APIKey)
	}
	resp, err := c.cfg.HTTPClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	return nil, refusal(resp)
}

// refusal reads what a server says in place of an answer.
func refusal(resp *http.Response) *serverError {
	defer func() { _ = resp.Body.Close() }()
	page, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // as far as it came
	refused := errorPage(page)
	refused.status, refused.wait = resp.StatusCode, retryAfter(resp.Header)
	if to, err := resp.Location(); err == nil {
		refused.text = "the server redirects to " + to.Scheme + "://" + to.Host + ": make the base URL what it really is"
	}
	return refused
}

// follow lets a request be redirected within its server alone, and as the request that it
// is: another server would be given the conversation, and a POST would become a GET.
func follow(req *http.Request, via []*http.Request) error {
	first := via[0]
	if req.Method != first.Method || req.URL.Hostname() != first.URL.Hostname() || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// maxRedirects is how often a request is redirected.
const maxRedirects = 3

// events gives the events of a reply to add until it returns an error; a reply that is
// not streamed is one. The end of the reply is io.EOF.
func events(resp *http.Response, add func(raw []byte) error) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/html":
		page, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // as far as it comes
		return &serverError{text: "the server answers with a web page, is the base URL right? " + string(page)}
	case "application/json":
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			return fmt.Errorf("read the reply: %w", err)
		}
		if err := add(raw); err != nil {
			return err
		}
		return io.EOF
	}
	name := ""
	for lines := bufio.NewReader(resp.Body); ; {
		line, ended := lines.ReadBytes('\n')
		if ended != nil && !errors.Is(ended, io.EOF) {
			return ended
		}
		event, some := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		event = bytes.TrimSpace(event)
		switch {
		case string(event) == "[DONE]":
			return io.EOF
		case bytes.HasPrefix(event, []byte("event:")):
			name = string(bytes.TrimSpace(event[len("event:"):]))
		case len(event) == 0:
			name = ""
		case some || bytes.HasPrefix(event, []byte("{")): // An error may come bare; comments do not count.
			if err := take(name, event, add); err != nil {
				return err
			}
		}
		if ended != nil {
			return ended
		}
	}
}

// take gives an event to add. One that is named an error is one, whatever it looks like.
func take(name string, event []byte, add func(raw []byte) error) error {
	err := add(event)
	if _, told := errors.AsType[*serverError](err); name != "error" || told {
		return err
	}
	said := errorPage(event)
	return said
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
