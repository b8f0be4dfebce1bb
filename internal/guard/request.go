package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// Limits of requests by the model or its scripts, in bytes.
const (
	// MaxReply bounds the shown part of a reply's body.
	MaxReply = 100 << 10
	// maxSent bounds the body of a request, maxSentHeaders all its headers.
	maxSent        = 1 << 20
	maxSentHeaders = 16 << 10
)

// userAgent is the default User-Agent.
const userAgent = "OneClaw/1.0"

// ErrRequest is returned for a request that is too large or inconsistent.
var ErrRequest = errors.New("not a usable request")

// NewRequest makes a request for the model or a script. A body without a content type is sent as
// JSON or text. The error is [ErrRequest], or that of [ParseURL].
func NewRequest(ctx context.Context, method, address, body string, headers map[string]string) (*http.Request, error) {
	u, err := ParseURL(strings.TrimSpace(address))
	if err != nil {
		return nil, err
	}
	if len(body) > maxSent {
		return nil, fmt.Errorf("%w: the body is larger than the limit of %d bytes", ErrRequest, maxSent)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(body))
	if err != nil {
		return nil, Reason(err)
	}
	req.Header.Set("User-Agent", userAgent)
	size, given := 0, map[string]bool{}
	for name, value := range headers {
		size += len(name) + len(value)
		key := textproto.CanonicalMIMEHeaderKey(name)
		if given[key] { // one would be sent, and a card shows both
			return nil, fmt.Errorf("%w: the header '%s' is given twice", ErrRequest, key)
		}
		given[key] = true
		if isReservedHeader(name) {
			return nil, fmt.Errorf("%w: the header '%s' cannot be set", ErrRequest, textproto.CanonicalMIMEHeaderKey(name))
		}
		req.Header.Set(name, value)
	}
	if size > maxSentHeaders {
		return nil, fmt.Errorf("%w: the headers are larger than the limit of %d bytes", ErrRequest, maxSentHeaders)
	}
	if body != "" && req.Header.Get("Content-Type") == "" {
		kind := "text/plain;charset=UTF-8"
		if json.Valid([]byte(body)) {
			kind = "application/json"
		}
		req.Header.Set("Content-Type", kind)
	}
	return req, nil
}

// OnlyNegotiates reports whether the headers of a request carry nothing but a wish for one of the usual
// types of content. Any other header could carry data, and so could a list of types.
func OnlyNegotiates(headers map[string]string) bool {
	usual := []string{"*/*", "application/json", "application/xml", "application/rss+xml", "application/atom+xml", "text/html", "text/plain", "text/csv", "text/*"}
	for name, value := range headers {
		if len(headers) > 1 || !strings.EqualFold(name, "Accept") || !slices.Contains(usual, value) {
			return false
		}
	}
	return true
}

// OverridesMethod reports whether a request asks its server to treat it as one with another method: by
// a header such as X-HTTP-Method-Override, or by a query parameter such as _method. A plain "method" in
// the query is an argument of many services.
func OverridesMethod(address string, headers ...string) bool {
	for _, name := range headers {
		if strings.Contains(strings.ToLower(name), "method") {
			return true
		}
	}
	_, query, _ := strings.Cut(address, "?")
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' || r == '#' }) {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		name = strings.ToLower(strings.TrimSpace(name))
		joined := strings.NewReplacer("-", "", "_", "", "$", "").Replace(name)
		if name == "_method" || strings.Contains(joined, "httpmethod") || strings.Contains(joined, "methodoverride") {
			return true
		}
	}
	return false
}

// Reply is a server's response.
type Reply struct {
	*http.Response
	// Data is the beginning of the body. Truncated is set if there is more.
	Data      []byte
	Truncated bool
}

// Fetch sends a request and reads at most limit bytes of the body. See [Reason] for errors.
func Fetch(client *http.Client, req *http.Request, limit int) (Reply, error) {
	var data bytes.Buffer
	reply, err := FetchTo(client, req, limit, &data)
	reply.Data = data.Bytes()
	return reply, err
}

// FetchTo is [Fetch] with the body written to w; Data stays empty.
func FetchTo(client *http.Client, req *http.Request, limit int, w io.Writer) (Reply, error) {
	res, err := client.Do(req)
	if err != nil {
		return Reply{}, Reason(err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.CopyN(w, res.Body, int64(limit)); errors.Is(err, io.EOF) {
		return Reply{Response: res}, nil
	} else if err != nil {
		return Reply{}, Reason(err)
	}
	n, err := io.CopyN(io.Discard, res.Body, 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return Reply{}, Reason(err)
	}
	return Reply{Response: res, Truncated: n > 0}, nil
}

// isReservedHeader reports whether a header, in any case, belongs to the connection or a proxy and
// must not be set.
func isReservedHeader(name string) bool {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "Te", "Trailer",
		"Keep-Alive", "Accept-Encoding", "Proxy-Authorization", "Proxy-Connection":
		return true
	}
	return false
}
