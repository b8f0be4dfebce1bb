package models

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"oneclaw/internal/redact"
)

// Headers are sent with each request to the server of the program's own model, for gateways that need some of
// their own.
type Headers map[string]redact.Secret

// UnmarshalText reads headers from lines such as "Name: value".
func (h *Headers) UnmarshalText(text []byte) error {
	read := Headers{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, ":")
		switch {
		case line == "":
		case !ok:
			return errors.New("want lines such as Name: value")
		default:
			read[strings.TrimSpace(name)] = redact.Secret(strings.TrimSpace(value))
		}
	}
	*h = read
	return nil
}

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	// secretHeader matches the names of headers whose values are secrets.
	secretHeader = regexp.MustCompile(`(?i)key|token|secret|pass|auth|cred|cookie|session|signature`)
)

// ownHeaders are the headers that requests have anyway.
var ownHeaders = []string{"Content-Type", "Content-Length", "Accept", "Host", "Connection", "Transfer-Encoding", "Anthropic-Version"}

// validate returns an error for the first invalid header. It contains no value.
func (h Headers) validate() error {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		value := string(h[name])
		switch {
		case !headerName.MatchString(name):
			return fmt.Errorf("setting model.headers (ONECLAW_MODEL_HEADERS): %q is not the name of a header", name)
		case slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)):
			return fmt.Errorf("setting model.headers (ONECLAW_MODEL_HEADERS): the bot sets %s itself", name)
		case value == "" || strings.ContainsFunc(value, unicode.IsControl):
			return fmt.Errorf("setting model.headers (ONECLAW_MODEL_HEADERS): the value of %s must be one line", name)
		}
	}
	return nil
}

// Secrets returns the values that must never be shown: those of headers whose name, or which themselves, look
// like secrets. Words such as the name of a provider are none.
func (h Headers) Secrets() (secrets []string) {
	for name, value := range h {
		text := string(value)
		random := len(text) >= 16 && strings.ContainsAny(text, "0123456789") && strings.ContainsFunc(text, unicode.IsLetter)
		if secretHeader.MatchString(name) || random {
			secrets = append(append(secrets, text), strings.TrimPrefix(text, "Bearer "))
		}
	}
	return secrets
}

// Transport returns a transport that adds the headers to requests to a server, and to no other.
func (h Headers) Transport(server string, next http.RoundTripper) http.RoundTripper {
	at, err := url.Parse(server)
	if err != nil || len(h) == 0 {
		return next
	}
	return &headerTransport{headers: h, scheme: at.Scheme, host: at.Host, next: next}
}

type headerTransport struct {
	headers      Headers
	scheme, host string
	next         http.RoundTripper
}

// RoundTrip sends a request, with the headers if it is to the server.
func (t *headerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != t.scheme || !strings.EqualFold(req.URL.Host, t.host) {
		return t.next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	for name, value := range t.headers {
		req.Header.Set(name, string(value))
	}
	return t.next.RoundTrip(req)
}

// CloseIdleConnections closes the idle connections of the inner transport.
func (t *headerTransport) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
