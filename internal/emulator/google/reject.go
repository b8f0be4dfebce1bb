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

// rejection is an answer that is an error.
type rejection struct {
	status  int
	message string
	// reason tells apart what the status does not.
	reason string
	// retryAfter is in seconds, where it is not nil.
	retryAfter *int
}

func invalid(format string, args ...any) *rejection {
	return &rejection{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...), reason: "badRequest"}
}

func missing(what string) *rejection {
	return &rejection{status: http.StatusNotFound, message: "Requested entity was not found: " + what + ".", reason: "notFound"}
}

// statusNames are the codes of google.rpc.Status for the statuses of HTTP.
var statusNames = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusNotFound: "NOT_FOUND", http.StatusConflict: "ABORTED", http.StatusPreconditionFailed: "FAILED_PRECONDITION",
	http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusInternalServerError: "INTERNAL",
	http.StatusServiceUnavailable: "UNAVAILABLE", http.StatusGatewayTimeout: "DEADLINE_EXCEEDED",
}

// refuse writes an error in Google's form.
func refuse(w http.ResponseWriter, r *rejection) {
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

// Fault makes requests fail before anything else is looked at.
type Fault struct {
	// Method is a pattern as of path.Match over the ids of methods, such as gmail.*.
	// Empty means every method, but not the sign-in, whose requests are auth.token and
	// auth.revoke.
	Method string
	// Status is the HTTP status.
	Status int
	// Reason and Message go into the error.
	Reason, Message string
	// RetryAfter is the header in seconds. nil leaves it out.
	RetryAfter *int
	// Skip lets so many requests pass first.
	Skip int
	// Times is how many requests fail. 0 means all that follow.
	Times int
}

// faults are those in force.
type faults []Fault

// meet returns the answer to a request of a method that meets a fault, the first that
// fits.
func (all faults) meet(id string) *rejection {
	for i := range all {
		f := &all[i]
		fits, err := path.Match(f.Method, id)
		if f.Method == "" {
			fits = !strings.HasPrefix(id, "auth.")
		}
		if err != nil || !fits || f.Times < 0 {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				f.Times = -1
			}
		}
		message := cmp.Or(f.Message, http.StatusText(f.Status))
		return &rejection{status: f.Status, message: message, reason: f.Reason, retryAfter: f.RetryAfter}
	}
	return nil
}
