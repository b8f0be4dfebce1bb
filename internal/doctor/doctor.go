// Package doctor runs checks and prints their findings, with advice on how to fix problems.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Timeout bounds each check.
const Timeout = 20 * time.Second

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	VerdictOK   Verdict = "ok"
	VerdictWarn Verdict = "warn"
	VerdictFail Verdict = "fail"
)

// Question is a question during the setup of the bot.
type Question struct {
	// Explanation says where to find the answer. Prompt names the value to enter.
	Explanation, Prompt string
	// Key is the name of the setting in the platform's section.
	Key string
	// Check validates an answer and returns a description of what it found, or why the answer is wrong.
	Check func(ctx context.Context, answer string) (string, error)
}

// Finding is the result of a check, with advice if there is a problem.
type Finding struct {
	Check  string  `json:"check"`
	Status Verdict `json:"status"`
	Text   string  `json:"text"`
	// cause is the end of Text that says what went wrong rather than what to do.
	cause string
}

// Advice returns the text without the error that caused the problem.
func (f Finding) Advice() string { return strings.TrimSuffix(f.Text, ": "+f.cause) }

// OK returns a finding without a problem.
func OK(format string, args ...any) *Finding {
	return &Finding{Status: VerdictOK, Text: fmt.Sprintf(format, args...)}
}

// Warn returns a finding about a problem that does not prevent the bot from running.
func Warn(format string, args ...any) *Finding {
	return &Finding{Status: VerdictWarn, Text: fmt.Sprintf(format, args...)}
}

// Fail returns a finding about something that does not work.
func Fail(format string, args ...any) *Finding {
	return &Finding{Status: VerdictFail, Text: fmt.Sprintf(format, args...)}
}

// FailError returns a finding about an error whose text is advice, before the error that it wraps.
func FailError(err error) *Finding {
	f := Fail("%v", err)
	if cause := errors.Unwrap(err); cause != nil {
		f.cause = cause.Error()
	}
	return f
}

// Check is one check. Run returns nil if the check does not apply.
type Check struct {
	Name string
	Run  func(ctx context.Context) *Finding
}

// Run runs the checks in order, each for at most the given time, and yields their findings. It ends with ctx.
func Run(ctx context.Context, checks []Check, timeout time.Duration, redact func(string) string) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		for _, c := range checks {
			if ctx.Err() != nil {
				return
			}
			limited, cancel := context.WithTimeout(ctx, timeout)
			f := c.Run(limited)
			cancel()
			if f == nil {
				continue
			}
			line := func(text string) string { return strings.ReplaceAll(strings.TrimSpace(redact(text)), "\n", "; ") }
			f.Check, f.Text, f.cause = c.Name, line(f.Text), line(f.cause)
			if !yield(*f) {
				return
			}
		}
	}
}

// Examine runs the checks and prints a line for each as soon as it is done, or all findings as JSON. The error
// names the failed checks.
func Examine(ctx context.Context, checks []Check, redact func(string) string, asJSON bool, w io.Writer) error {
	all, failed := []Finding{}, error(nil)
	for f := range Run(ctx, checks, Timeout, redact) {
		if all = append(all, f); !asJSON {
			if _, failed = fmt.Fprintf(w, "%-4s  %-14s  %s\n", f.Status, f.Check, f.Text); failed != nil {
				break
			}
		}
	}
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		failed = encoder.Encode(all)
	}
	return errors.Join(failed, ctx.Err(), failedError(all))
}

func failedError(all []Finding) error {
	var names []string
	for _, f := range all {
		if f.Status == VerdictFail {
			names = append(names, f.Check)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("checks failed: %s", strings.Join(names, ", "))
}
