package anthropic

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/openai"
)

var (
	errStalled    = errors.New("the server sent nothing for too long")
	errSlow       = errors.New("the reply took too long")
	errIncomplete = errors.New("the stream ended before the reply did")
	errFiltered   = errors.New("the provider's content filter withheld the answer")
)

// fault is why an attempt did not work. A passing one may be tried again.
type fault struct {
	failure *agent.ModelError
	passing bool
	// said is all that the server said, whose beginning is in the failure.
	said string
}

// statuses of errors that come in a stream, behind the status 200
// (platform.claude.com/docs/en/api/errors, 2026-11).
var statuses = map[string]int{
	"invalid_request_error": http.StatusBadRequest, "authentication_error": http.StatusUnauthorized,
	"billing_error": http.StatusPaymentRequired, "permission_error": http.StatusForbidden, "not_found_error": http.StatusNotFound,
	"request_too_large": http.StatusRequestEntityTooLarge, "rate_limit_error": http.StatusTooManyRequests,
	"api_error": http.StatusInternalServerError, "timeout_error": http.StatusGatewayTimeout, "overloaded_error": statusOverloaded,
}

// statusOverloaded is what Anthropic answers when it has too much to do.
const statusOverloaded = 529

// judge turns an error of an attempt into a fault. ctx is that of the attempt.
func (c *Client) judge(ctx context.Context, err error) *fault {
	for _, cause := range []error{errStalled, errSlow} {
		if errors.Is(context.Cause(ctx), cause) {
			err = cause
		}
	}
	f := &fault{said: openai.WithoutAddress(err), failure: &agent.ModelError{}}
	code := ""
	if r, ok := openai.RefusalIn(err); ok {
		f.failure.Status, f.failure.RetryAfter, code, f.said = cmp.Or(r.Status, statuses[r.Code]), r.Wait, r.Code, r.Text
	}
	f.failure.Kind, f.passing = openai.Classify(f.failure.Status, code, f.said)
	if errors.Is(err, errFiltered) {
		f.failure.Kind, f.passing = agent.KindRejected, false
	}
	f.failure.Err = errors.New(openai.Clean(f.said, c.cfg.APIKey))
	return f
}

// quirks are what a model or a conversation is asked otherwise, by what was refused before.
type quirks struct {
	noTemperature, noEffort, noThinking, noSearch, blind bool
	// thoughts says how much of what was thought goes back: all of it, that of the present
	// turn, nothing. It is remembered for a conversation, since the signatures of some
	// models hold only for what stood in front of them.
	thoughts int
}

const (
	thoughtsAll = iota
	thoughtsOfTurn
	thoughtsNone
)

// thinks reports whether what was thought goes back.
func (q quirks) thinks(inTurn bool) bool {
	return q.thoughts == thoughtsAll || q.thoughts == thoughtsOfTurn && inTurn
}

// learn changes what a refusal names: the same request may pass then. Who has nothing to
// learn from it gets the same quirks back.
func (q quirks) learn(f *fault) quirks {
	if f.failure.Status != http.StatusBadRequest {
		return q
	}
	text := strings.ToLower(f.said)
	has := func(words ...string) bool {
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	}
	switch {
	case has("signature", "thinking"), has("thinking", "cannot be modified"), has("expected `thinking`"):
		q.thoughts = min(q.thoughts+1, thoughtsNone)
	case has("temperature"):
		q.noTemperature = true
	case has("effort"), has("output_config"):
		q.noEffort = true
	case has("thinking"):
		q.noThinking = true
	case has("tool_search"), has("defer_loading"):
		q.noSearch = true
	case has("image", "not support"):
		q.blind = true
	}
	return q
}
