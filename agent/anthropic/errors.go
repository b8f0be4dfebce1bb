package anthropic

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"oneclaw/agent/provider"
)

var errIncomplete = errors.New("the stream ended before the reply did")

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

// refusedIn is the error that an event of a stream is.
func refusedIn(event []byte) error {
	e := provider.ErrorIn(event)
	e.Status = cmp.Or(e.Status, statuses[e.Code])
	return e
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
func (q quirks) learn(f *provider.Fault) quirks {
	if f.Failure.Status != http.StatusBadRequest {
		return q
	}
	text := strings.ToLower(f.Said)
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
