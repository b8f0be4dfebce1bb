package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/googleapi"

	"oneclaw/internal/retry"
	"oneclaw/toolgroups"
)

// Error codes, besides those of package toolgroups.
const (
	CodeNotConnected = "not_connected"
	CodeNotFound     = "not_found"
	CodeConflict     = "conflict"
	CodeRateLimited  = "rate_limited"
	CodeUnavailable  = "unavailable"
)

const (
	// ScopePrefix is the common prefix of the services' scopes.
	ScopePrefix = "https://www.googleapis.com/auth/"
	// AskToConnect is the last sentence of errors that a new link can fix.
	AskToConnect = "Ask the user to send /connect google and to open the link."
)

// maxMessage bounds the repeated part of Google's own text, in bytes.
const maxMessage = 600

// tokenPattern matches Google's tokens, in case a message contains one.
var tokenPattern = regexp.MustCompile(`ya29\.[\w.~+/-]+|1//[\w.~+/-]+|(?i:bearer)\s+\S+`)

// Invalidf returns the error for invalid arguments.
func Invalidf(format string, args ...any) error {
	return toolgroups.Errorf(toolgroups.CodeInvalid, format, args...)
}

// mapError maps the error of an operation to the codes of the contract.
func (c *Conn) mapError(err error) error {
	var answer *googleapi.Error
	var unreached *url.Error
	var long *http.MaxBytesError
	switch {
	case IsToolError(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &answer):
		return c.mapResponse(answer)
	case errors.As(err, &long):
		return toolgroups.Errorf(toolgroups.CodeExecution, "The answer is larger than %d bytes. Ask for less at a time.", long.Limit)
	case errors.As(err, &unreached):
		return toolgroups.Errorf(CodeUnavailable, "Google could not be reached: %s. Try again later.", PlainLine(unreached.Err.Error()))
	}
	return toolgroups.Errorf(toolgroups.CodeExecution, "%s", PlainLine(err.Error()))
}

// unknownOutcome returns the error of a call that Google may have carried out, although no response has
// arrived. It does not suggest to try again: a mail would be sent twice.
func unknownOutcome(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	code, cause := CodeUnavailable, PlainLine(err.Error())
	switch {
	case errors.Is(err, context.Canceled):
		code, cause = toolgroups.CodeCancelled, "the call was stopped"
	case errors.Is(err, context.DeadlineExceeded):
		code, cause = toolgroups.CodeTimeout, "no answer came in time"
	}
	return toolgroups.Errorf(code, "It is not known whether Google has done it: %s. "+
		"Look first whether it happened, such as in the sent mail or in the calendar; do not simply make this call again.", cause)
}

// mapResponse maps an error response from Google to the codes of the contract.
func (c *Conn) mapResponse(answer *googleapi.Error) error {
	text := PlainLine(cmp.Or(strings.TrimSpace(answer.Message), http.StatusText(answer.Code), "no reason given"))
	switch code := answer.Code; {
	case IsRateLimit(code, []byte(answer.Body)):
		return toolgroups.Errorf(CodeRateLimited, "Google limits the rate of requests: %s. Try again in %s.", text, c.retryIn(answer.Header))
	case code == http.StatusBadRequest:
		return toolgroups.Errorf(toolgroups.CodeInvalid, "Google did not accept the request: %s (%d). Change the arguments.", text, code)
	case code == http.StatusUnauthorized:
		return toolgroups.Errorf(toolgroups.CodeDenied, "Google no longer accepts the connection: %s (%d). %s", text, code, AskToConnect)
	case code == http.StatusForbidden && lacksScope(answer):
		return toolgroups.OwnErrorf(toolgroups.CodeDenied, "The permission %s was not granted. %s", ScopeNames(c.Scopes), AskToConnect)
	case code == http.StatusForbidden:
		return toolgroups.Errorf(toolgroups.CodeDenied, "Google refused: %s (%d). Used permission: %s.", text, code, ScopeNames(c.Scopes))
	case code == http.StatusNotFound, code == http.StatusGone:
		return toolgroups.Errorf(CodeNotFound, "Google did not find it: %s (%d). Check the id.", text, code)
	case code == http.StatusConflict, code == http.StatusPreconditionFailed:
		return toolgroups.Errorf(CodeConflict, "It was changed or exists already: %s (%d). Read it again first.", text, code)
	case code >= http.StatusInternalServerError, code == http.StatusRequestTimeout:
		return toolgroups.Errorf(CodeUnavailable, "Google is not available: %s (%d). Try again later; look first whether it happened nevertheless.", text, code)
	default:
		return toolgroups.Errorf(toolgroups.CodeExecution, "Google answered %d: %s.", code, text)
	}
}

// PlainLine returns a foreign text as one short line without tokens.
func PlainLine(text string) string {
	text = strings.Join(strings.Fields(tokenPattern.ReplaceAllString(text, "[token]")), " ")
	text = strings.TrimRight(text, ".")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// errorReply is the part of Google's error response that distinguishes errors of the same status.
type errorReply struct {
	Error struct {
		Status string `json:"status"`
		Errors []struct {
			Reason string `json:"reason"`
		} `json:"errors"`
		Details []struct {
			Reason string `json:"reason"`
		} `json:"details"`
	} `json:"error"`
}

// Reasons returns the status and the reasons in the body of an error response.
func Reasons(body []byte) []string {
	var r errorReply
	if json.Unmarshal(body, &r) != nil {
		return nil
	}
	out := []string{r.Error.Status}
	for _, e := range r.Error.Errors {
		out = append(out, e.Reason)
	}
	for _, d := range r.Error.Details {
		out = append(out, d.Reason)
	}
	return out
}

// IsRateLimit reports whether a response means a rate limit, for which the older services use 403
// (developers.google.com/workspace/gmail/api/guides/handle-errors).
func IsRateLimit(code int, body []byte) bool {
	if code == http.StatusTooManyRequests {
		return true
	}
	if code != http.StatusForbidden {
		return false
	}
	for _, r := range Reasons(body) {
		switch r {
		case "sharingRateLimitExceeded", "downloadQuotaExceeded", "rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "quotaExceeded", "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED":
			return true
		}
	}
	return false
}

func lacksScope(answer *googleapi.Error) bool {
	for _, r := range Reasons([]byte(answer.Body)) {
		if r == "ACCESS_TOKEN_SCOPE_INSUFFICIENT" || r == "insufficientPermissions" {
			return true
		}
	}
	return strings.Contains(answer.Header.Get("Www-Authenticate"), "insufficient_scope")
}

// retryIn returns how long to wait before trying again, as text.
func (c *Conn) retryIn(h http.Header) string {
	if d, ok := retry.After(h, c.Now()); ok {
		return max(d, time.Second).Round(time.Second).String()
	}
	return "a minute"
}

// ScopeNames lists scopes, separated by commas, without [ScopePrefix].
func ScopeNames(scopes []string) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = strings.TrimPrefix(s, ScopePrefix)
	}
	return strings.Join(names, ", ")
}

// scopeWords say what a scope lets the bot do, after "I may". They are for people, ScopeNames for models and logs.
var scopeWords = map[string]string{
	"openid":                   "see your address",
	"userinfo.email":           "see your address",
	"gmail.modify":             "read, send and change your mail",
	"gmail.settings.basic":     "change the settings and filters of your mail",
	"gmail.settings.sharing":   "change where your mail is forwarded and who else may use it",
	"calendar":                 "read and change your calendars",
	"contacts":                 "read and change your contacts",
	"directory.readonly":       "see the people of your organisation",
	"documents":                "read and change your documents",
	"drive":                    "read, change, share and delete your files in Drive",
	"forms.body":               "read and change your forms",
	"forms.responses.readonly": "read the answers to your forms",
	"presentations":            "read and change your presentations",
	"spreadsheets":             "read and change your spreadsheets",
	"tasks":                    "read and change your tasks",
}

// ScopeWords says in words what scopes let the bot do.
func ScopeWords(scopes []string) string {
	var all []string
	for _, s := range scopes {
		name := strings.TrimPrefix(s, ScopePrefix)
		if words := cmp.Or(scopeWords[name], "use "+name); !slices.Contains(all, words) {
			all = append(all, words)
		}
	}
	return strings.Join(all, "; ")
}

// Wrap adds the operation to an error unless the error is for the model.
func Wrap(what string, err error) error {
	if IsToolError(err) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// IsToolError reports whether an error is meant for the model.
func IsToolError(err error) bool {
	var fault *toolgroups.Error
	return errors.As(err, &fault)
}
