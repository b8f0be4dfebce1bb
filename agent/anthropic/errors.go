package anthropic

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"oneclaw/agent/provider"
)

var errIncomplete = errors.New("the stream ended before the reply was complete")

// errorStatuses maps the types of errors in a stream, whose response has the status 200, to the status
// that the same refusal has as a response (platform.claude.com/docs/en/api/errors, 2026-11).
var errorStatuses = map[string]int{
	"invalid_request_error": http.StatusBadRequest, "authentication_error": http.StatusUnauthorized,
	"billing_error": http.StatusPaymentRequired, "permission_error": http.StatusForbidden, "not_found_error": http.StatusNotFound,
	"request_too_large": http.StatusRequestEntityTooLarge, "rate_limit_error": http.StatusTooManyRequests,
	"api_error": http.StatusInternalServerError, "timeout_error": http.StatusGatewayTimeout, "overloaded_error": statusOverloaded,
}

// statusOverloaded is the status with which Anthropic reports that it is overloaded.
const statusOverloaded = 529

// streamError returns the error in a stream event.
func streamError(event []byte) error {
	e := provider.DecodeErrorBody(event)
	e.Status = cmp.Or(e.Status, errorStatuses[e.Code])
	return e
}

// quirks are changes to requests, learned from earlier refusals.
type quirks struct {
	noTemperature, noThinking, noVision bool
	// refusedEfforts are the reasoning efforts that the model has refused.
	refusedEfforts provider.Efforts
	// thinkingScope selects which thinking blocks are sent back: all, those of this turn, or none. It
	// is stored per conversation, since some models' signatures are valid only for the text that
	// precedes them.
	thinkingScope int
}

const (
	thinkingAll = iota
	thinkingThisTurn
	thinkingNone
)

// sendsThinking reports whether the thinking blocks of a reply are sent back. inTurn is set for a reply of
// the current turn.
func (q quirks) sendsThinking(inTurn bool) bool {
	return q.thinkingScope == thinkingAll || q.thinkingScope == thinkingThisTurn && inTurn
}

// learn returns quirks that avoid the cause of a refusal, so that the same request may succeed. effort is
// the reasoning effort of the request. If the refusal names no known cause, the quirks are unchanged.
func (q quirks) learn(f *provider.Fault, effort string) quirks {
	if f.Failure.Status != http.StatusBadRequest {
		return q
	}
	text := strings.ToLower(f.Response)
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
		q.thinkingScope = min(q.thinkingScope+1, thinkingNone)
	case has("temperature"):
		q.noTemperature = true
	case has("effort"), has("output_config"):
		q.refusedEfforts = q.refusedEfforts.Refuse(effort, text)
	case has("thinking"):
		q.noThinking = true
	case has("image", "not support"):
		q.noVision = true
	}
	return q
}
