package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// maxParseAttempts bounds the attempts at a request whose replies cannot be parsed.
const maxParseAttempts = 3

// maxErrorText bounds how much of a server's error is logged, in characters.
const maxErrorText = 500

// ErrFiltered is returned when the provider's content filter withheld the reply.
var ErrFiltered = errors.New("the provider's content filter withheld the answer")

var errTooLarge = errors.New("the reply is too large")

// Fault is the reason why an attempt failed. After a transient fault the request may be retried.
type Fault struct {
	Failure   *agent.ModelError
	transient bool
	// Response is the server's whole error text, and the parameter that it is about. Failure contains the
	// beginning of the text.
	Response string
	// maxAttempts bounds the attempts after such a fault; 0 means the usual bound.
	maxAttempts int
}

// attempts returns how many attempts are allowed after such a fault, at most the given number.
func (f *Fault) attempts(most int) int {
	if f.maxAttempts > 0 {
		return min(f.maxAttempts, most)
	}
	return most
}

// Refusal is a server's error response.
type Refusal struct {
	Status     int // HTTP status, also if an error in a stream names one; 0 if there is none
	retryAfter time.Duration
	Code, text string
	// param is the parameter that is refused. The text need not name it.
	param string
}

// Error returns the server's text.
func (e *Refusal) Error() string { return e.text }

// NewFault returns the fault for an attempt's error. ctx is the context of the attempt. The key is
// removed from the error's text.
func NewFault(ctx context.Context, err error, key string) *Fault {
	for _, cause := range []error{errStalled, errAttemptTimeout} {
		if errors.Is(context.Cause(ctx), cause) {
			err = cause
		}
	}
	told, ok := errors.AsType[*Refusal](err)
	if !ok {
		told = &Refusal{text: withoutAddress(err)}
	}
	kind, passing := classify(told.Status, told.Code, told.text)
	most := 0
	switch {
	case strings.Contains(told.Code, "tool_use_failed"):
		// The model wrote a call that cannot be parsed. This happens at random, so another attempt is
		// likely to succeed.
		kind, passing, most = agent.KindUnavailable, true, maxParseAttempts
	case errors.Is(err, ErrFiltered), isPolicy(told.Code), told.Status == http.StatusForbidden && isModeration(told.Code, told.text):
		kind, passing = agent.KindRejected, false
	case errors.Is(err, errTooLarge):
		kind, passing = agent.KindUnavailable, false
	}
	cause := errors.New(sanitize(told.text, key))
	switch {
	case errors.Is(err, ErrFiltered):
		cause = ErrFiltered
	case kind == agent.KindRejected && isFiltered(told):
		cause = fmt.Errorf("%w: %w", ErrFiltered, cause)
	}
	return &Fault{
		Failure: &agent.ModelError{
			Kind: kind, Status: told.Status, RetryAfter: told.retryAfter, Err: cause,
			Filtered: errors.Is(cause, ErrFiltered), AboutTools: kind == agent.KindRejected && isAboutTools(told),
		},
		transient: passing, Response: strings.TrimSpace(told.text + "\n" + told.param), maxAttempts: most,
	}
}

// withoutAddress returns the text of an HTTP client's error without the URL.
func withoutAddress(err error) string {
	if address, ok := errors.AsType[*url.Error](err); ok {
		return address.Err.Error()
	}
	return err.Error()
}

// classify returns the kind of a failure and whether it is transient.
func classify(status int, code, text string) (kind agent.Kind, passing bool) {
	if status <= http.StatusInternalServerError && status != http.StatusTooManyRequests && isOverflow(code, text) ||
		status == http.StatusTooManyRequests && neverFits(text) {
		return agent.KindOverflow, false
	}
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return agent.KindUnavailable, false
	}
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return agent.KindOverflow, false
	case status == http.StatusPaymentRequired, status < http.StatusInternalServerError && isOutOfCredit(code, text):
		return agent.KindCredit, false
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusBadRequest && isBadKey(text):
		return agent.KindAuth, false
	case status == http.StatusTooManyRequests, status == 0 && strings.Contains(code, "rate_limit"):
		return agent.KindRateLimit, true
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		return agent.KindUnavailable, true
	case status >= 400 && status < 500, status == 0 && strings.Contains(code, "invalid_request"):
		return agent.KindRejected, false
	}
	return agent.KindUnavailable, true
}

// overflowPhrases are phrases in refusals of a request larger than the context, by OpenAI, DeepSeek,
// LiteLLM, Anthropic, Gemini, OpenRouter, Groq, Mistral, Kimi, xAI, vLLM, LM Studio, llama.cpp, SGLang, Ollama,
// Z.ai, DashScope (qwen-code #98), TGI and Copilot. The agent also takes a refusal in other words for one of
// these, if the request is large.
var overflowPhrases = []string{
	"maximum context length", "context length exceeded", "context_length_exceeded", "exceeds the context",
	"exceed the context", "exceed context", "context window", "prompt is too long", "input is too long",
	"exceeds the available context size", "exceeds the maximum number of tokens",
	"reduce the length of the messages", "exceeded model token limit", "maximum prompt length",
	"context length is only", "maximum model length", "trying to keep the first", "context size has been exceeded",
	"longer than the model's context", "prompt too long", "max context length", "exceeds context", "exceeds max length",
	"range of input length", "context limit", "`max_new_tokens` must be <=", "prompt token count", "tokens to keep from the initial prompt",
	"context overflow", "maximum input length", "input tokens exceed", "too many tokens",
}

// overflowCodes are parts of the codes of such refusals.
var overflowCodes = []string{"context_length_exceeded", "exceed_context_size", "max_prompt_tokens_exceeded"}

// isOverflow reports whether a refusal says that the request is larger than the context, by its code
// or, for servers that have no code for this, by its text.
func isOverflow(code, text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(overflowCodes, func(words string) bool { return strings.Contains(code, words) }) ||
		slices.ContainsFunc(overflowPhrases, func(words string) bool { return strings.Contains(text, words) })
}

// rateLimitPattern matches a limit of tokens a minute and the tokens that a request needs of it.
var rateLimitPattern = regexp.MustCompile(`(?i)limit:? ([0-9,]+).{0,60}requested:? ([0-9,]+)`)

// neverFits reports whether a rate limit refuses a request because the request alone is larger, so that waiting
// does not help.
func neverFits(text string) bool {
	m := rateLimitPattern.FindStringSubmatch(text)
	if m == nil {
		return strings.Contains(strings.ToLower(text), "request too large")
	}
	return parseTokens(m[2]) > parseTokens(m[1])
}

// minuteLimitPattern matches a limit of tokens a minute in a refusal that does not say what the request needs
// (Anthropic).
var minuteLimitPattern = regexp.MustCompile(`(?i)rate limit of ([0-9,]+) (?:input )?tokens`)

// CompareSize takes a rate limit that is smaller than the refused request, of so many tokens, for an overflow.
func (f *Fault) CompareSize(tokens int) {
	m := minuteLimitPattern.FindStringSubmatch(f.Response)
	if m == nil || f.Failure.Kind != agent.KindRateLimit {
		return
	}
	if limit := parseTokens(m[1]); limit > 0 && limit < tokens {
		f.Failure.Kind, f.transient = agent.KindOverflow, false
	}
}

// parseTokens returns a number with commas; 0 if it is not plausible.
func parseTokens(text string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil || n < minContext || n > maxContext {
		return 0
	}
	return n
}

// creditPhrases are phrases in refusals, of any status, by accounts without credit or at their spending
// limit: OpenAI (its codes), Anthropic (400: claude-code #66314, #2127), xAI (403 and 429: continue #10373,
// warp #14867), Kimi (403 and 429: Kimi-K2 #5, continue #11443).
var creditPhrases = []string{
	"insufficient_quota", "billing_hard_limit_reached", "credit balance is too low", "reached your specified api usage limits",
	"used all available credits", "exceeded_current_quota", "due to insufficient balance",
}

// isOutOfCredit reports whether a refusal says that the account cannot pay for the request.
func isOutOfCredit(code, text string) bool {
	text = strings.ToLower(code + " " + text)
	return slices.ContainsFunc(creditPhrases, func(words string) bool { return strings.Contains(text, words) })
}

// isBadKey reports whether a refusal with the status 400 is about the key: Gemini's (continue #10290,
// #11336) and xAI's (continue #10778) have no other status for it.
func isBadKey(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "api key not valid") || strings.Contains(text, "api key expired") || strings.Contains(text, "incorrect api key")
}

// contextLimitPattern matches the size of the context in the text of a refusal.
var contextLimitPattern = regexp.MustCompile(`(?i)(?:context length (?:is|of)?(?: only)?|context size \(|token limit:|limit is|\blimit:?|limit of|(?:model|prompt) length (?:is|of)|tokens >|` +
	`tokens allowed \(|max_new_tokens.{0,3} must be <=|should be \[1,|context limit: [0-9 +]+>|longer than the model's context length \(?) *([0-9,]+)|([0-9,]+) maximum context length`)

// contextLimitIn returns the context size stated in the text of a refusal; 0 if there is none.
func contextLimitIn(text string) int {
	m := contextLimitPattern.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	return parseTokens(cmp.Or(m[1], m[2]))
}

// Bounds of a plausible context size.
const (
	minContext = 256
	maxContext = 1e9
)

// isModeration reports whether a refusal is about content and not about the key. Some gateways use the
// same status for both.
func isModeration(code, text string) bool {
	text = strings.ToLower(code + " " + text)
	return strings.Contains(text, "moderation") || strings.Contains(text, "flagged") || strings.Contains(text, "content_filter")
}

// isPolicy reports whether the code of a refusal names a policy about content: content_policy_violation,
// bio_policy, cyber_policy.
func isPolicy(code string) bool { return strings.Contains(code, "_policy") }

// isFiltered reports whether a refusal is by the provider's filter. OpenAI refuses pictures with the code
// moderation_blocked.
func isFiltered(e *Refusal) bool {
	return isModeration(e.Code, e.text) || isPolicy(e.Code) || strings.Contains(e.text, "safety system")
}

// sanitize clips a server's text, puts it on one line, and removes the key from it.
func sanitize(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	return cmp.Or(wording.Clip(text, maxErrorText), "no details")
}
