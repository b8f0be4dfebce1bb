package toolgroups

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/internal/wording"
)

// MaxText bounds the text of a result for the model, in characters.
const MaxText = 30_000

// Run runs a tool that [Round.Lookup] has found: it checks the role again, repairs and validates
// the arguments, bounds the time and the text, and turns a panic into an execution_error. It logs
// the incident id and stack of a panic unless log is nil. It returns when the tool's function
// returns.
func Run(ctx context.Context, log *slog.Logger, tool Tool, call Call) (Result, *Error) {
	if err := checkRole(tool, call.Role); err != nil {
		return Result{}, err
	}
	if !tool.ChecksArguments {
		args, err := ValidateArguments(tool, call.Arguments)
		if err != nil {
			return Result{}, err
		}
		call.Arguments = args
	}
	limit := cmp.Or(tool.Timeout, DefaultTimeout)
	timed, cancel := context.WithTimeout(ctx, limit+tool.Wait)
	defer cancel()
	res, err := runRecovering(timed, log, tool, call)
	if fault := toModelError(ctx, timed, tool.Name, limit, err); fault != nil {
		return Result{}, &Error{Code: fault.Code, Message: cut(fault.Message, call.MaxText()), Own: fault.Own}
	}
	if !tool.BoundsText {
		res.Text = cut(res.Text, call.MaxText())
	}
	return res, nil
}

// runRecovering turns a panic into an error.
func runRecovering(ctx context.Context, log *slog.Logger, tool Tool, call Call) (res Result, err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		incident := rand.Text()[:8]
		if log != nil {
			log.Error("tool panicked", "tool", tool.Name, "session", call.Session, "incident", incident,
				"cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
		res, err = Result{}, OwnErrorf(CodeExecution,
			"Tool '%s' stopped because of an internal fault (incident %s). Try something else.", tool.Name, incident)
	}()
	return tool.Run(ctx, call)
}

// toModelError turns an error from a tool into the error for the model.
func toModelError(ctx, timed context.Context, name string, limit time.Duration, err error) *Error {
	if err == nil {
		return nil
	}
	var fault *Error
	switch {
	case errors.As(err, &fault):
		return fault
	case ctx.Err() != nil:
		return OwnErrorf(CodeCancelled, "Tool '%s' was stopped before it ended.", name)
	case errors.Is(timed.Err(), context.DeadlineExceeded):
		return OwnErrorf(CodeTimeout, "Tool '%s' did not end within %s.", name, limit)
	default:
		return Errorf(CodeExecution, "%s", err.Error())
	}
}

// cut shortens a text to limit characters and appends a note of its full length.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	head, tail := wording.SplitAt(text, limit)
	if tail == "" {
		return text
	}
	return fmt.Sprintf("%s\n[cut: the first %d of %d characters]", head, limit, utf8.RuneCountInString(text))
}

// TypedHandler makes a handler from a function that takes its arguments as a struct. Fields follow
// their json tags; missing arguments stay zero.
func TypedHandler[In any](fn func(ctx context.Context, call Call, in In) (Result, error)) Handler {
	return func(ctx context.Context, call Call) (Result, error) {
		var in In
		if len(call.Arguments) > 0 {
			if err := json.Unmarshal(call.Arguments, &in); err != nil {
				return Result{}, decodeError(call.Name, err)
			}
		}
		return fn(ctx, call, in)
	}
}

// FormatTime formats a time in the named IANA zone; without a name it keeps the time's own zone. The
// format "human_readable" is in words, any other is ISO 8601. It returns false for an unknown zone.
func FormatTime(at time.Time, zone, format string) (string, bool) {
	if zone != "" {
		location, err := wording.LoadZone(zone)
		if err != nil {
			return "", false
		}
		at = at.In(location)
	}
	if format == "human_readable" {
		return at.Format("Monday, January 2, 2006 at 3:04:05 PM MST"), true
	}
	return at.Format("2006-01-02T15:04:05.000-07:00"), true
}

// Assign sets *field to *value, an optional argument. A nil value changes nothing.
func Assign[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

func decodeError(name string, err error) *Error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return OwnErrorf(CodeInvalid, "Invalid arguments for '%s': '%s' cannot be a %s", name, wrong.Field, wrong.Value)
	}
	return OwnErrorf(CodeInvalid, "Invalid arguments for '%s': they do not fit its parameters", name)
}
