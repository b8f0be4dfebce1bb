package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"oneclaw/internal/redact"
)

// maxBody bounds the recorded part of a body.
const maxBody = 1 << 20

// transport records the traffic of another transport.
type transport struct {
	tap
	next http.RoundTripper
}

// CloseIdleConnections forwards to the underlying transport.
func (t transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip makes a request. Its line is recorded when the response's body is closed.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	e := &exchange{tap: t.tap, line: Line{
		Time: t.Now(), Direction: Call, Service: t.service, Method: req.Method, URL: t.mask(req.URL.Redacted()),
	}, kind: req.Header.Get("Content-Type")}
	if req.Body != nil && req.Body != http.NoBody {
		again := req.GetBody
		req = req.Clone(req.Context())
		req.Body = &watchedBody{ReadCloser: req.Body, kept: &e.request}
		if again != nil {
			req.GetBody = func() (io.ReadCloser, error) {
				e.request.reset()
				body, err := again()
				return &watchedBody{ReadCloser: body, kept: &e.request}, err
			}
		}
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		e.end(err)
		return nil, err
	}
	e.line.Status = resp.StatusCode
	e.line.Type, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if e.line.Name() == "auth.test" {
		e.line.Scopes = resp.Header.Get("X-OAuth-Scopes")
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, kept: &e.response, end: e.end}
	return resp, nil
}

// exchange is a request in progress.
type exchange struct {
	tap
	line              Line
	kind              string
	request, response bodyStart
}

// end records the line.
func (e *exchange) end(err error) {
	l := e.line
	l.Ended, l.Request, l.Response = e.Now(), e.Body(e.kind, e.request.bytes()), e.Body(l.Type, e.response.bytes())
	if err != nil {
		l.Error = e.mask(err.Error())
	}
	e.keep(l)
}

// bodyStart is the beginning of a body.
type bodyStart struct {
	mu   sync.Mutex
	data []byte
}

func (k *bodyStart) add(p []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data = append(k.data, p[:min(len(p), maxBody+1-len(k.data))]...)
}

func (k *bodyStart) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data = nil
}

func (k *bodyStart) bytes() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.data
}

// watchedBody records what is read of a body, and reports its end once.
type watchedBody struct {
	io.ReadCloser
	kept *bodyStart
	end  func(error)
	once sync.Once
	err  error
}

// Read implements io.Reader.
func (w *watchedBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.kept.add(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// Close implements io.Closer.
func (w *watchedBody) Close() error {
	err := w.ReadCloser.Close()
	if w.end != nil {
		w.once.Do(func() { w.end(w.err) })
	}
	return err
}

// Body returns a body for a line: JSON unchanged, forms as objects, texts as strings; of
// everything else only the length.
func (r *Recorder) Body(kind string, data []byte) json.RawMessage {
	if len(data) == 0 {
		return nil
	}
	if len(data) <= maxBody && json.Valid(data) {
		var line bytes.Buffer
		if json.Compact(&line, []byte(r.mask(string(data)))) == nil {
			return line.Bytes()
		}
	}
	var shown any
	if fields := fieldsOf(kind, data); fields != nil {
		for name, value := range fields {
			if fields[name] = r.mask(value); name == "token" {
				fields[name] = redact.Mask
			}
		}
		shown = fields
	} else {
		shown = r.mask(r.textOf(kind, data))
	}
	out, _ := json.Marshal(shown) // strings always can
	return out
}

// fieldsOf returns the fields of a form, with the names of files instead of their content; nil
// if the body is not a form.
func fieldsOf(kind string, data []byte) map[string]string {
	switch media, params, _ := mime.ParseMediaType(kind); {
	case media == "application/x-www-form-urlencoded" && len(data) <= maxBody:
		return formOf(string(data))
	case media == "multipart/form-data":
		return partsOf(data, params["boundary"])
	}
	return nil
}

// textOf returns a body that is not a form.
func (r *Recorder) textOf(kind string, data []byte) string {
	media, _, _ := mime.ParseMediaType(kind)
	switch {
	case media == "text/event-stream" && r.scattered(string(data)):
		return "[left out: a secret goes through its pieces]"
	case media != "" && media != "application/json" && !strings.HasPrefix(media, "text/"):
		return fmt.Sprintf("[%d bytes of %s]", len(data), media)
	case len(data) > maxBody:
		return strings.ToValidUTF8(string(data[:maxBody]), "\uFFFD") + "[cut off]"
	}
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

func formOf(text string) map[string]string {
	fields := map[string]string{}
	values, _ := url.ParseQuery(text) // undecodable fields are left out
	for name := range values {
		fields[name] = values.Get(name)
	}
	return fields
}

// partsOf returns the fields of a multipart form, with the names of files instead of their
// content.
func partsOf(data []byte, boundary string) map[string]string {
	fields := map[string]string{}
	parts := multipart.NewReader(bytes.NewReader(data), boundary)
	for {
		part, err := parts.NextPart()
		if err != nil {
			return fields
		}
		value, _ := io.ReadAll(part) // of a truncated body, what there is
		if fields[part.FormName()] = string(value); part.FileName() != "" {
			fields[part.FormName()] = "[file " + part.FileName() + "]"
		}
	}
}

// secretURLs matches Slack's addresses that are secrets themselves: to open a socket, answer a
// command, upload a file; and the verification token of old apps.
var secretURLs = regexp.MustCompile(`(ticket(?:=|%3D)|"(?:response_url|upload_url|token)" ?: ?"|hooks\.slack\.com/[a-z]+/|/upload/v1/)[^"&\s\\]+`)

// mask removes secrets from a text.
func (r *Recorder) mask(text string) string {
	text = r.Redact(text)
	for _, hint := range []string{"ticket", `_url"`, `"token"`, "hooks.", "/upload/"} { // faster than the pattern
		if strings.Contains(text, hint) {
			return secretURLs.ReplaceAllString(text, "${1}"+redact.Mask)
		}
	}
	return text
}

// scattered reports whether a secret spans pieces of a stream, each of which is too short to be
// masked.
func (r *Recorder) scattered(stream string) bool {
	pieces := map[string]*strings.Builder{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				walk(path+"."+name, inner)
			}
		case []any:
			for _, inner := range v {
				walk(path, inner)
			}
		case string:
			if pieces[path] == nil {
				pieces[path] = &strings.Builder{}
			}
			pieces[path].WriteString(v)
		}
	}
	for line := range strings.Lines(stream) {
		var v any
		if data, ok := strings.CutPrefix(line, "data:"); ok && json.Unmarshal([]byte(data), &v) == nil {
			walk(cmp.Or(eventType(v), "event"), v)
		}
	}
	for _, text := range pieces {
		if whole := text.String(); r.mask(whole) != whole {
			return true
		}
	}
	return false
}

// eventType distinguishes events of the Responses API, whose pieces are interleaved.
func eventType(v any) string {
	fields, _ := v.(map[string]any)
	kind, _ := fields["type"].(string)
	return kind
}
