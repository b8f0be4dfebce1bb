package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/agent"
	"oneclaw/internal/runes"
)

// maxErrorText bounds what a server's error puts into the log, in characters.
const maxErrorText = 500

var (
	errStalled  = errors.New("the server sent nothing for too long")
	errSlow     = errors.New("the reply took too long")
	errTooLarge = errors.New("the reply is too large")
)

// fault is why an attempt did not work. A passing one may be tried again.
type fault struct {
	failure *agent.ModelError
	passing bool
}

// serverError is what a server says in place of a reply.
type serverError struct {
	status     int // of HTTP; 0 for an error in a stream
	wait       time.Duration
	code, text string
}

// Error returns what the server says.
func (e *serverError) Error() string { return e.text }

// inStream is an error that came as an event.
func inStream(e *api.APIError) error {
	told := &serverError{code: codeOf(e), text: e.Message}
	if n, ok := e.Code.(int); ok && n >= 400 && n < 600 {
		told.status = n
	}
	return told
}

// codeOf is the code and the type of an error.
func codeOf(e *api.APIError) string {
	if e.Code == nil {
		return e.Type
	}
	return fmt.Sprint(e.Code) + " " + e.Type
}

// judge turns an error of an attempt into a fault. ctx is that of the attempt.
func (c *Client) judge(ctx context.Context, err error) *fault {
	for _, cause := range []error{errStalled, errSlow} {
		if errors.Is(context.Cause(ctx), cause) {
			err = cause
		}
	}
	told, ok := errors.AsType[*serverError](err)
	if !ok {
		told = &serverError{text: withoutAddress(err)}
	}
	kind, passing := classify(told.status, told.code, told.text)
	switch {
	case errors.Is(err, errFiltered), told.status == http.StatusForbidden && moderated(told.code, told.text):
		kind, passing = agent.KindRejected, false
	case errors.Is(err, errTooLarge):
		kind, passing = agent.KindUnavailable, false
	}
	return &fault{
		failure: &agent.ModelError{Kind: kind, Status: told.status, RetryAfter: told.wait, Err: errors.New(c.clean(told.text))},
		passing: passing,
	}
}

// withoutAddress is the text of an error of the HTTP client without the address.
func withoutAddress(err error) string {
	if address, ok := errors.AsType[*url.Error](err); ok {
		return address.Err.Error()
	}
	return err.Error()
}

// classify chooses the kind of a failure and whether it may pass.
func classify(status int, code, text string) (kind agent.Kind, passing bool) {
	if overflows(code, text) && (status == 0 || status >= 400 && status < 500) {
		return agent.KindOverflow, false
	}
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return agent.KindOverflow, false
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return agent.KindAuth, false
	case status == http.StatusPaymentRequired, strings.Contains(code, "insufficient_quota"):
		return agent.KindRateLimit, false
	case status == http.StatusTooManyRequests, status == 0 && strings.Contains(code, "rate_limit"):
		return agent.KindRateLimit, true
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		return agent.KindUnavailable, true
	case status >= 400 && status < 500, status == 0 && strings.Contains(code, "invalid_request"):
		return agent.KindRejected, false
	}
	return agent.KindUnavailable, true
}

// overflows recognises a request that is larger than the context, in the words of
// the servers that have no code for it.
func overflows(code, text string) bool {
	if strings.Contains(code, "context_length_exceeded") {
		return true
	}
	text = strings.ToLower(text)
	for _, words := range []string{
		"maximum context length", "context length exceeded", "context_length_exceeded", "exceeds the context",
		"exceed the context", "exceed context", "context window", "prompt is too long", "input is too long",
		"exceeds the available context size", "exceeds the maximum number of tokens",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// moderated recognises a refusal of what is said among those of a key: some gateways use
// one status for both.
func moderated(code, text string) bool {
	text = strings.ToLower(code + " " + text)
	return strings.Contains(text, "moderation") || strings.Contains(text, "flagged") || strings.Contains(text, "content_filter")
}

// clean bounds a text from outside and takes the key out of it.
func (c *Client) clean(text string) string {
	if c.cfg.APIKey != "" {
		text = strings.ReplaceAll(text, c.cfg.APIKey, "[key]")
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	return cmp.Or(runes.Clip(text, maxErrorText), "no details")
}
