package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// maxErrorBody is how much of an error page is read.
const maxErrorBody = 64 << 10

// doer sends the one request of an attempt. It stands between the library and the
// network for what the library does not do: it puts the payload into the request,
// keeps headers of the answer, and bounds and watches the body.
type doer struct {
	client  *http.Client
	payload payload
	// alive is called whenever something arrives.
	alive func()

	status     int
	retryAfter time.Duration
}

// Do sends the request.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	skeleton, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	body, err := d.payload.fill(skeleton)
	if err != nil {
		return nil, err
	}
	req.ContentLength = 0
	for _, part := range body {
		req.ContentLength += int64(len(part))
	}
	req.GetBody = func() (io.ReadCloser, error) { return reader(body), nil }
	req.Body = reader(body)
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, err
	}
	d.alive()
	d.status = resp.StatusCode
	d.retryAfter = retryAfter(resp.Header)
	if resp.StatusCode >= 400 {
		resp.Body = &limited{ReadCloser: resp.Body, left: maxErrorBody, atEnd: io.EOF, alive: d.alive}
		return resp, nil
	}
	resp.Body = &limited{ReadCloser: resp.Body, left: maxReply, atEnd: errTooLarge, alive: d.alive}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && kind == "application/json" {
		return asStream(resp)
	}
	return resp, nil
}

func reader(parts [][]byte) io.ReadCloser {
	readers := make([]io.Reader, len(parts))
	for i := range parts {
		readers[i] = bytes.NewReader(parts[i])
	}
	return io.NopCloser(io.MultiReader(readers...))
}

// failedStatus is the status of the answer if it says that something failed.
func (d *doer) failedStatus() int {
	if d.status < 400 {
		return 0
	}
	return d.status
}

// asStream makes a stream of one event out of a reply that is not streamed.
func asStream(resp *http.Response) (*http.Response, error) {
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the reply: %w", err)
	}
	var event bytes.Buffer
	event.WriteString("data: ")
	if err := json.Compact(&event, raw); err != nil {
		return nil, fmt.Errorf("decode the reply: %w", err)
	}
	event.WriteString("\n\ndata: [DONE]\n\n")
	resp.Body = io.NopCloser(&event)
	return resp, nil
}

// limited is a body that ends, with atEnd, behind a number of bytes.
type limited struct {
	io.ReadCloser
	left  int
	atEnd error
	alive func()
}

// Read reads at most what is left.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, l.atEnd
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
