package provider

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// maxErrorBody bounds how much of an error response is read, in bytes.
const maxErrorBody = 64 << 10

// Send sends a request to an address, as GET if there is no body, and returns the response. An error
// response is returned as a *[Refusal].
func Send(ctx context.Context, client *http.Client, address string, body []byte, header http.Header) (*http.Response, error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	return nil, Refused(resp)
}

// Refused reads an error response.
func Refused(resp *http.Response) *Refusal {
	defer func() { _ = resp.Body.Close() }()
	page, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // as far as it came
	refused := ErrorIn(page)
	refused.Status, refused.Wait = resp.StatusCode, retryAfter(resp.Header)
	if to, err := resp.Location(); err == nil {
		refused.Text = "the server redirects to " + to.Scheme + "://" + to.Host + ": make the base URL what it really is"
	}
	return refused
}

// RestrictRedirects returns a client that does not leave the server it calls. It copies client; nil means a plain
// one.
func RestrictRedirects(client *http.Client) *http.Client {
	within := http.Client{}
	if client != nil {
		within = *client
	}
	within.CheckRedirect = checkRedirect
	return &within
}

// checkRedirect allows redirects only within the server and with the same method: another server would be
// given the conversation, and a POST would become a GET.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if req.Method != first.Method || req.URL.Hostname() != first.URL.Hostname() || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// maxRedirects bounds the redirects of a request.
const maxRedirects = 3

// Events passes the events of a reply to add until it returns an error; a reply that is not streamed is
// one event. The end of the reply is io.EOF.
func Events(resp *http.Response, add func(raw []byte) error) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/html":
		page, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // as far as it comes
		return &Refusal{Text: "the server answers with a web page, is the base URL right? " + string(page)}
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
		case some || bytes.HasPrefix(event, []byte("{")): // an error may come without an event; comments do not count
			if err := take(name, event, add); err != nil {
				return err
			}
		}
		if ended != nil {
			return ended
		}
	}
}

// take passes an event to add. An event named error is always an error.
func take(name string, event []byte, add func(raw []byte) error) error {
	err := add(event)
	if _, told := errors.AsType[*Refusal](err); name != "error" || told {
		return err
	}
	said := ErrorIn(event)
	return said
}

// maxReply bounds how many bytes of a reply are read.
const maxReply = 16 << 20

// Bounded returns a body that ends after the largest reply. It calls alive whenever data arrives.
func Bounded(body io.ReadCloser, alive func()) io.ReadCloser {
	return &limited{ReadCloser: body, left: maxReply, alive: alive}
}

// limited is a body that fails with errTooLarge after a number of bytes.
type limited struct {
	io.ReadCloser
	left  int
	alive func() // called whenever something arrives
}

// Read reads at most the remaining bytes.
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

// retryAfter returns how long the server asks to wait; 0 if it does not say.
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

// seconds returns a duration from outside, clamped between 0 and a day.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) || s < 0 {
		return 0
	}
	return time.Duration(min(s, 24*60*60) * float64(time.Second))
}
