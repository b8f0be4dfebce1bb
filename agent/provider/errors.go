package provider

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/wording"
)

// maxSamples bounds how often a request is sent whose replies cannot be parsed.
const maxSamples = 3

// maxErrorText bounds how much of a server's error is logged, in characters.
const maxErrorText = 500

// ErrFiltered says that a filter of the provider withheld the reply.
var ErrFiltered = errors.New("the provider's content filter withheld the answer")

var errTooLarge = errors.New("the reply is too large")

// Fault says why an attempt failed. After a passing fault the request may be repeated.
type Fault struct {
	Failure *agent.ModelError
	Passing bool
	// Said is the server's whole response, whose beginning is in Failure.
	Said string
	// most bounds how often such a request is sent; 0 means the usual bound.
	most int
}

// attempts returns how often a request with such a fault may be sent.
func (f *Fault) attempts(most int) int {
	if f.most > 0 {
		return min(f.most, most)
	}
	return most
}

// Refusal is a server's error response.
type Refusal struct {
	Status     int // of HTTP; 0 for an error in a stream
	Wait       time.Duration
	Code, Text string
}

// Error returns the server's text.
func (e *Refusal) Error() string { return e.Text }

// Judge turns an error of an attempt into a fault. ctx is the attempt's. The key is removed from the
// texts.
func Judge(ctx context.Context, err error, key string) *Fault {
	for _, cause := range []error{errStalled, errSlow} {
		if errors.Is(context.Cause(ctx), cause) {
			err = cause
		}
	}
	told, ok := errors.AsType[*Refusal](err)
	if !ok {
		told = &Refusal{Text: withoutAddress(err)}
	}
	kind, passing := classify(told.Status, told.Code, told.Text)
	most := 0
	switch {
	case strings.Contains(told.Code, "tool_use_failed"):
		// The model wrote a call that cannot be parsed. That is chance: another attempt is likely to
		// pass.
		kind, passing, most = agent.KindUnavailable, true, maxSamples
	case errors.Is(err, ErrFiltered), told.Status == http.StatusForbidden && moderated(told.Code, told.Text):
		kind, passing = agent.KindRejected, false
	case errors.Is(err, errTooLarge):
		kind, passing = agent.KindUnavailable, false
	}
	return &Fault{
		Failure: &agent.ModelError{Kind: kind, Status: told.Status, RetryAfter: told.Wait, Err: errors.New(clean(told.Text, key))},
		Passing: passing, Said: told.Text, most: most,
	}
}

// withoutAddress returns the text of an HTTP client's error without the address.
func withoutAddress(err error) string {
	if address, ok := errors.AsType[*url.Error](err); ok {
		return address.Err.Error()
	}
	return err.Error()
}

// classify returns the kind of a failure and whether it may pass.
func classify(status int, code, text string) (kind agent.Kind, passing bool) {
	if status <= http.StatusInternalServerError && status != http.StatusTooManyRequests && overflows(code, text) {
		return agent.KindOverflow, false
	}
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return agent.KindUnavailable, false
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

// overflowing lists phrases of servers that refuse a request larger than the context: OpenAI, DeepSeek,
// vLLM, LiteLLM; Anthropic; Gemini; OpenRouter; Groq; Mistral; Kimi; xAI; vLLM; LM Studio; llama.cpp.
var overflowing = []string{
	"maximum context length", "context length exceeded", "context_length_exceeded", "exceeds the context",
	"exceed the context", "exceed context", "context window", "prompt is too long", "input is too long",
	"exceeds the available context size", "exceeds the maximum number of tokens",
	"reduce the length of the messages", "exceeded model token limit", "maximum prompt length",
	"context length is only", "maximum model length", "trying to keep the first", "context size has been exceeded",
}

// overflows reports whether a refusal says that the request is larger than the context, also for
// servers that have no code for it.
func overflows(code, text string) bool {
	if strings.Contains(code, "context_length_exceeded") || strings.Contains(code, "exceed_context_size") {
		return true
	}
	text = strings.ToLower(text)
	return slices.ContainsFunc(overflowing, func(words string) bool { return strings.Contains(text, words) })
}

// limits matches the size of the context in the text of a refusal.
var limits = regexp.MustCompile(`(?i)(?:context length (?:is|of)(?: only)?|context size \(|token limit:|limit is|(?:model|prompt) length (?:is|of)|tokens >|tokens allowed \() *([0-9,]+)|([0-9,]+) maximum context length`)

// LimitIn returns the size of the context that a refusal names; 0 if it names none.
func LimitIn(text string) int {
	m := limits.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(strings.ReplaceAll(cmp.Or(m[1], m[2]), ",", ""))
	if err != nil || n < minContext || n > maxContext {
		return 0
	}
	return n
}

// Bounds of a plausible context size.
const (
	minContext = 256
	maxContext = 1e9
)

// moderated reports whether a refusal is about content and not about the key: some gateways use one
// status for both.
func moderated(code, text string) bool {
	text = strings.ToLower(code + " " + text)
	return strings.Contains(text, "moderation") || strings.Contains(text, "flagged") || strings.Contains(text, "content_filter")
}

// clean bounds a text from outside and removes the key from it.
func clean(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	return cmp.Or(wording.Clip(text, maxErrorText), "no details")
}
