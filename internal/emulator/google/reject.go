package google

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// rejection is an error response of the service.
type rejection struct {
	status  int
	message string
	// reason distinguishes errors with the same status.
	reason string
	// retryAfter is in seconds, if not nil.
	retryAfter *int
	// late carries the request out first.
	late bool
}

func invalidArgument(format string, args ...any) *rejection {
	return &rejection{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...), reason: "badRequest"}
}

func notFound(what string) *rejection {
	return &rejection{status: http.StatusNotFound, message: "Requested entity was not found: " + what + ".", reason: "notFound"}
}

// statusNames maps HTTP statuses to google.rpc.Status codes.
var statusNames = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusNotFound: "NOT_FOUND", http.StatusConflict: "ABORTED", http.StatusPreconditionFailed: "FAILED_PRECONDITION",
	http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusInternalServerError: "INTERNAL",
	http.StatusServiceUnavailable: "UNAVAILABLE", http.StatusGatewayTimeout: "DEADLINE_EXCEEDED",
}

// writeError writes an error in Google's form.
func writeError(w http.ResponseWriter, r *rejection) {
	if r.retryAfter != nil {
		w.Header().Set("Retry-After", strconv.Itoa(*r.retryAfter))
	}
	if r.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://accounts.google.com/", error="invalid_token"`)
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(r.status)
	body := doc{
		"code": r.status, "message": r.message, "status": statusNames[r.status],
		"errors": []any{doc{"message": r.message, "domain": "global", "reason": r.reason}},
	}
	if r.status == http.StatusForbidden && r.reason != "" {
		body["details"] = []any{doc{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": r.reason, "domain": "googleapis.com"}}
	}
	_ = json.NewEncoder(w).Encode(doc{"error": body})
}

// Fault makes requests for known methods fail, before the emulator checks anything else unless it is Late.
type Fault struct {
	// Method is a pattern as in path.Match for method ids, such as gmail.*. Empty means every method
	// except those of the sign-in, which are auth.token and auth.revoke.
	Method string
	// Status is the HTTP status. 0 closes the connection without a response.
	Status int
	// Late carries out the request before it fails. Google does not exclude that for UNAVAILABLE (503): "it is
	// not always safe to retry non-idempotent operations" (github.com/googleapis/googleapis, google/rpc/code.proto).
	Late bool
	// Reason and Message are fields of the error.
	Reason, Message string
	// RetryAfter is the Retry-After header in seconds; nil omits it.
	RetryAfter *int
	// SkipFirst is the number of matching requests that succeed before the first failure.
	SkipFirst int
	// Times is the number of requests that fail. 0 means all.
	Times int
}

// faults are the active faults.
type faults []Fault

// match returns the error of the first fault that matches a method, or nil.
func (all faults) match(id string) *rejection {
	for i := range all {
		f := &all[i]
		fits, err := path.Match(f.Method, id)
		if f.Method == "" {
			fits = !strings.HasPrefix(id, "auth.")
		}
		if err != nil || !fits || f.Times < 0 {
			continue
		}
		if f.SkipFirst > 0 {
			f.SkipFirst--
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				f.Times = -1
			}
		}
		message := cmp.Or(f.Message, http.StatusText(f.Status))
		return &rejection{status: f.Status, message: message, reason: f.Reason, retryAfter: f.RetryAfter, late: f.Late}
	}
	return nil
}
