package anthropic

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"oneclaw/agent/provider"
)

var errIncomplete = errors.New("the stream ended before the reply did")

// statuses maps errors inside a stream, which has the status 200, to the status of the same refusal
// (platform.claude.com/docs/en/api/errors, 2026-11).
var statuses = map[string]int{
	"invalid_request_error": http.StatusBadRequest, "authentication_error": http.StatusUnauthorized,
	"billing_error": http.StatusPaymentRequired, "permission_error": http.StatusForbidden, "not_found_error": http.StatusNotFound,
	"request_too_large": http.StatusRequestEntityTooLarge, "rate_limit_error": http.StatusTooManyRequests,
	"api_error": http.StatusInternalServerError, "timeout_error": http.StatusGatewayTimeout, "overloaded_error": statusOverloaded,
}

// statusOverloaded is the status of an overloaded Anthropic.
const statusOverloaded = 529

// errorIn returns the error in an event of a stream.
func errorIn(event []byte) error {
	e := provider.ErrorIn(event)
	e.Status = cmp.Or(e.Status, statuses[e.Code])
	return e
}

// quirks are changes to requests, learned from earlier refusals.
type quirks struct {
	noTemperature, noEffort, noThinking, noSearch, blind bool
	// thoughts says how much thinking goes back: all, that of the present turn, or none. It is
	// remembered for a conversation, since the signatures of some models hold only for the text in
	// front of them.
	thoughts int
}

const (
	thoughtsAll = iota
	thoughtsOfTurn
	thoughtsNone
)

// thinks reports whether thinking goes back.
func (q quirks) thinks(inTurn bool) bool {
	return q.thoughts == thoughtsAll || q.thoughts == thoughtsOfTurn && inTurn
}

// learn returns quirks that avoid what a refusal names, so that the same request may pass. If the
// refusal teaches nothing, they are unchanged.
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
