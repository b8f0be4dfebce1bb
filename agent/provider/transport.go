package provider

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// maxErrorBody bounds how much of an error response is read, in bytes.
const maxErrorBody = 64 << 10

// Send sends a request to an address, as GET if body is nil, and returns the response. An error response
// is returned as a *[Refusal].
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
	return nil, ReadRefusal(resp)
}

// ReadRefusal reads and closes an error response.
func ReadRefusal(resp *http.Response) *Refusal {
	defer func() { _ = resp.Body.Close() }()
	page, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part of the body is enough
	refused := DecodeErrorBody(page)
	refused.Status, refused.retryAfter = resp.StatusCode, retryAfter(resp.Header)
	if to, err := resp.Location(); err == nil {
		refused.text = "the server redirects to " + to.Scheme + "://" + to.Host + ": set the base URL to the server's real address"
	}
	return refused
}

// RestrictRedirects returns a copy of client that follows redirects only within the same server. A nil
// client means a plain one.
func RestrictRedirects(client *http.Client) *http.Client {
	within := http.Client{}
	if client != nil {
		within = *client
	}
	within.CheckRedirect = checkRedirect
	return &within
}

// checkRedirect allows redirects only within the server and with the same method. Otherwise, another
// server would receive the conversation and the key, or a POST would become a GET. Another port is another server, and
// without TLS anyone is.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	same := req.URL.Host == first.URL.Host && req.URL.Scheme == first.URL.Scheme
	if !same || req.Method != first.Method || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// maxRedirects bounds the redirects of a request.
const maxRedirects = 3

// ForEachEvent calls add with each event of a reply, until add returns an error, and returns that error.
// A reply that is not streamed is one event. At the end of the reply it returns io.EOF or [ErrDone], and for a web page
// or an event named error a *[Refusal].
func ForEachEvent(resp *http.Response, add func(raw []byte) error) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/html":
		page, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part of it is enough
		return &Refusal{text: "the server returned a web page; check the base URL: " + string(page)}
	case "application/json":
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			return fmt.Errorf("read the reply: %w", err)
		}
		if err := add(bytes.TrimPrefix(raw, byteOrderMark)); err != nil {
			return err
		}
		return io.EOF
	}
	e := eventReader{add: add}
	lines := lineReader{Reader: bufio.NewReader(resp.Body)}
	if begin, _ := lines.Peek(len(byteOrderMark)); bytes.Equal(begin, byteOrderMark) {
		_, _ = lines.Discard(len(begin))
	}
	for {
		line, ended := lines.next()
		if ended != nil && !errors.Is(ended, io.EOF) {
			return ended
		}
		err := e.read(bytes.TrimSpace(line))
		if err == nil && ended != nil {
			err = e.flush()
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				awaitEnd(resp.Body, lines)
			}
			return err
		}
		if ended != nil {
			return ended
		}
	}
}

// byteOrderMark may precede a reply, and is no part of it.
var byteOrderMark = []byte("\ufeff")

// lineReader reads lines that end with CR, LF or both, as server-sent events may
// (html.spec.whatwg.org/multipage/server-sent-events.html).
type lineReader struct {
	*bufio.Reader
	afterCR bool // the LF that belongs to it has not been read, since waiting for it would hold the line back
}

// next returns the next line without its end, and the error after the last one.
func (l *lineReader) next() (line []byte, err error) {
	for {
		c, err := l.ReadByte()
		if err != nil {
			return line, err
		}
		second := l.afterCR && c == '\n'
		l.afterCR = c == '\r'
		switch {
		case second:
		case c == '\r', c == '\n':
			return line, nil
		default:
			line = append(line, c)
		}
	}
}

// ErrDone is returned for the event that ends a stream of OpenAI's API. It wraps io.EOF.
var ErrDone = fmt.Errorf("the server ended the stream: %w", io.EOF)

// eventReader reads server-sent events. An event may have several lines of data, and its end is a blank line;
// some servers leave that out, so a line that is whole by itself is an event.
type eventReader struct {
	add  func(raw []byte) error
	name string
	data []byte // lines that are not whole
}

// read reads one line.
func (e *eventReader) read(line []byte) error {
	data, some := bytes.CutPrefix(line, []byte("data:"))
	data = bytes.TrimSpace(data)
	done := string(data) == "[DONE]"
	if named := bytes.HasPrefix(line, []byte("event:")); named || done || len(line) == 0 {
		if err := e.flush(); err != nil {
			return err
		}
		if done {
			return ErrDone
		}
		e.name = ""
		if named {
			e.name = string(bytes.TrimSpace(line[len("event:"):]))
		}
		return nil
	}
	switch {
	case bytes.HasPrefix(line, []byte(":")): // a comment
	case len(e.data) > 0:
		e.data = append(append(e.data, '\n'), data...)
	case !some && !bytes.HasPrefix(line, []byte("{")): // an error may lack "data:"
	case len(data) == 0 || json.Valid(data):
		return deliver(e.name, data, e.add)
	default:
		e.data = slices.Clone(data)
	}
	return nil
}

// flush delivers an event that ends without being whole.
func (e *eventReader) flush() error {
	data := e.data
	if e.data = nil; len(data) == 0 {
		return nil
	}
	return deliver(e.name, data, e.add)
}

// Bounds of what is read after the last event.
const (
	maxTail  = 4 << 10 // bytes
	tailTime = 50 * time.Millisecond
)

// awaitEnd reads the end of a stream after its last event: over HTTP/1 a connection serves the next
// request only if its stream was read to the end.
func awaitEnd(body io.Closer, rest io.Reader) {
	late := time.AfterFunc(tailTime, func() { _ = body.Close() })
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, rest, maxTail) // it only saves a new connection
}

// deliver calls add with an event and returns its error. For an event named error, it returns the
// *[Refusal] of add or, if add returned none, the one in the event.
func deliver(name string, event []byte, add func(raw []byte) error) error {
	err := add(event)
	if _, told := errors.AsType[*Refusal](err); name != "error" || told {
		return err
	}
	said := DecodeErrorBody(event)
	return said
}

// maxReply bounds how many bytes of a reply are read.
const maxReply = 16 << 20

// LimitBody returns a body that fails after maxReply bytes. It calls alive whenever data arrives.
func LimitBody(body io.ReadCloser, alive func()) io.ReadCloser {
	return &limitedBody{ReadCloser: body, remaining: maxReply, onData: alive}
}

// limitedBody is a body that fails with errTooLarge once remaining bytes have been read.
type limitedBody struct {
	io.ReadCloser
	remaining int
	onData    func() // called whenever data arrives
}

// Read reads at most the remaining bytes.
func (l *limitedBody) Read(p []byte) (int, error) {
	if l.remaining <= 0 {
		return 0, errTooLarge
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.remaining)])
	l.remaining -= n
	if n > 0 {
		l.onData()
	}
	return n, err
}

// retryAfter returns how long the server asks to wait; 0 if it does not say.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return clampSeconds(ms / 1000)
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return clampSeconds(s)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// clampSeconds returns seconds as a duration between 0 and a day.
func clampSeconds(s float64) time.Duration {
	if math.IsNaN(s) || s < 0 {
		return 0
	}
	return time.Duration(min(s, 24*60*60) * float64(time.Second))
}
