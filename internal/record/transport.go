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

// RoundTrip implements [http.RoundTripper]. It records the exchange when the response's body is closed,
// or when the request fails.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	e := &exchange{tap: t.tap, line: Line{
		Time: t.Now(), Direction: Call, Service: t.service, Method: req.Method, URL: t.mask(req.URL.Redacted()),
	}, contentType: req.Header.Get("Content-Type")}
	if req.Body != nil && req.Body != http.NoBody {
		again := req.GetBody
		req = req.Clone(req.Context())
		req.Body = &recordedBody{ReadCloser: req.Body, prefix: &e.request}
		if again != nil {
			req.GetBody = func() (io.ReadCloser, error) {
				e.request.reset()
				body, err := again()
				return &recordedBody{ReadCloser: body, prefix: &e.request}, err
			}
		}
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		e.finish(err)
		return nil, err
	}
	e.line.Status = resp.StatusCode
	e.line.MediaType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if e.line.Name() == "auth.test" {
		e.line.OAuthScopes = resp.Header.Get("X-OAuth-Scopes")
	}
	resp.Body = &recordedBody{ReadCloser: resp.Body, prefix: &e.response, onClose: e.finish}
	return resp, nil
}

// exchange is a request in progress.
type exchange struct {
	tap
	line              Line
	contentType       string
	request, response bodyPrefix
}

// finish records the exchange. err is the error with which it ended, or nil.
func (e *exchange) finish(err error) {
	l := e.line
	l.EndedAt, l.Request, l.Response = e.Now(), e.EncodeBody(e.contentType, e.request.bytes()), e.EncodeBody(l.MediaType, e.response.bytes())
	if err != nil {
		l.Error = e.mask(err.Error())
	}
	e.record(l)
}

// bodyPrefix is the recorded beginning of a body.
type bodyPrefix struct {
	mu   sync.Mutex
	data []byte
}

func (k *bodyPrefix) add(p []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data = append(k.data, p[:min(len(p), maxBody+1-len(k.data))]...)
}

func (k *bodyPrefix) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data = nil
}

func (k *bodyPrefix) bytes() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.data
}

// recordedBody records the data read from a body. The first Close calls onClose with the read error.
type recordedBody struct {
	io.ReadCloser
	prefix  *bodyPrefix
	onClose func(error)
	once    sync.Once
	err     error
}

// Read implements io.Reader.
func (w *recordedBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.prefix.add(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// Close implements io.Closer.
func (w *recordedBody) Close() error {
	err := w.ReadCloser.Close()
	if w.onClose != nil {
		w.once.Do(func() { w.onClose(w.err) })
	}
	return err
}

// EncodeBody returns a body for a line, with secrets masked: JSON as it is, forms as objects, texts
// as strings. For other bodies it returns the length.
func (r *Recorder) EncodeBody(kind string, data []byte) json.RawMessage {
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
	if fields := formFields(kind, data); fields != nil {
		for name, value := range fields {
			if fields[name] = r.mask(value); name == "token" {
				fields[name] = redact.Mask
			}
		}
		shown = fields
	} else {
		shown = r.mask(r.bodyText(kind, data))
	}
	out, _ := json.Marshal(shown) // strings always can
	return out
}

// formFields returns the fields of a form, with the names of files instead of their content. It
// returns nil if the body is not a form.
func formFields(kind string, data []byte) map[string]string {
	switch media, params, _ := mime.ParseMediaType(kind); {
	case media == "application/x-www-form-urlencoded" && len(data) <= maxBody:
		return urlencodedFields(string(data))
	case media == "multipart/form-data":
		return multipartFields(data, params["boundary"])
	}
	return nil
}

// bodyText returns the text of a body that is not a form.
func (r *Recorder) bodyText(kind string, data []byte) string {
	media, _, _ := mime.ParseMediaType(kind)
	switch {
	case media == "text/event-stream" && r.hasSplitSecret(string(data)):
		return "[left out: a secret goes through its pieces]"
	case media != "" && media != "application/json" && !strings.HasPrefix(media, "text/"):
		return fmt.Sprintf("[%d bytes of %s]", len(data), media)
	case len(data) > maxBody:
		return strings.ToValidUTF8(string(data[:maxBody]), "\uFFFD") + "[cut off]"
	}
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

func urlencodedFields(text string) map[string]string {
	fields := map[string]string{}
	values, _ := url.ParseQuery(text) // ignores invalid fields
	for name := range values {
		fields[name] = values.Get(name)
	}
	return fields
}

// multipartFields returns the fields of a multipart form, with the names of files instead of their
// content.
func multipartFields(data []byte, boundary string) map[string]string {
	fields := map[string]string{}
	parts := multipart.NewReader(bytes.NewReader(data), boundary)
	for {
		part, err := parts.NextPart()
		if err != nil {
			return fields
		}
		value, _ := io.ReadAll(part) // the body may be truncated
		if fields[part.FormName()] = string(value); part.FileName() != "" {
			fields[part.FormName()] = "[file " + part.FileName() + "]"
		}
	}
}

// secretPattern matches Slack's URLs that are secrets themselves (to open a WebSocket, answer a
// command, or upload a file), and the verification tokens of old apps.
var secretPattern = regexp.MustCompile(`(ticket(?:=|%3D)|"(?:response_url|upload_url|token)" ?: ?"|hooks\.slack\.com/[a-z]+/|/upload/v1/)[^"&\s\\]+`)

// mask masks secrets in a text.
func (r *Recorder) mask(text string) string {
	text = r.Redact(text)
	for _, hint := range []string{"ticket", `_url"`, `"token"`, "hooks.", "/upload/"} { // faster than the pattern
		if strings.Contains(text, hint) {
			return secretPattern.ReplaceAllString(text, "${1}"+redact.Mask)
		}
	}
	return text
}

// hasSplitSecret reports whether a secret is split over several events of a stream, so that masking
// each event does not find it.
func (r *Recorder) hasSplitSecret(stream string) bool {
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

// eventType returns the type of an event. Texts of different types are interleaved in the Responses API.
func eventType(v any) string {
	fields, _ := v.(map[string]any)
	kind, _ := fields["type"].(string)
	return kind
}
