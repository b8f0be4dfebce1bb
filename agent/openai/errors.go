package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

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

// judge turns an error of an attempt into a fault. ctx is that of the attempt.
func (c *Client) judge(ctx context.Context, err error, d *doer) *fault {
	for _, cause := range []error{errStalled, errSlow} {
		if errors.Is(context.Cause(ctx), cause) {
			err = cause
		}
	}
	status, code, text := c.describe(err, d)
	kind, passing := classify(status, code, text)
	switch {
	case errors.Is(err, api.ErrReasoningToolsRequireResponses):
		kind, passing = agent.KindRejected, false
		text = fmt.Sprintf("model %s takes tools together with reasoning only over the Responses API, which is switched off here: "+
			"switch it on, choose another model, or set the reasoning effort to none where the model allows it", c.cfg.Model)
	case refusedHere(err), errors.Is(err, errFiltered), status == http.StatusForbidden && moderated(code, text):
		kind, passing = agent.KindRejected, false
	case errors.Is(err, errTooLarge):
		kind, passing = agent.KindUnavailable, false
	}
	return &fault{
		failure: &agent.ModelError{Kind: kind, Status: status, RetryAfter: d.retryAfter, Err: errors.New(c.clean(text))},
		passing: passing,
	}
}

// refusedHere reports whether the library itself refused to send the request.
func refusedHere(err error) bool {
	for _, e := range []error{
		api.ErrChatCompletionInvalidModel, api.ErrReasoningEffortUnsupported, api.ErrReasoningSamplingUnsupported,
		api.ErrReasoningModelMaxTokensDeprecated, api.ErrReasoningModelLimitationsOther, api.ErrReasoningModelLimitationsLogprobs,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// describe takes an error apart: the HTTP status (0 for none), the server's code,
// and a text without addresses.
func (c *Client) describe(err error, d *doer) (status int, code, text string) {
	var reported *api.APIError
	var other *api.RequestError
	var address *url.Error
	switch {
	case errors.As(err, &other):
		// This one first: it may hold an APIError that could not be decoded.
		return other.HTTPStatusCode, "", string(other.Body)
	case errors.As(err, &reported):
		status = reported.HTTPStatusCode
		if n, ok := reported.Code.(int); ok && status == 0 && n >= 400 && n < 600 {
			status = n
		}
		if reported.Code != nil {
			code = fmt.Sprint(reported.Code)
		}
		return status, code + " " + reported.Type, reported.Message
	case errors.As(err, &address):
		return d.failedStatus(), "", address.Err.Error()
	}
	return d.failedStatus(), "", err.Error()
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
