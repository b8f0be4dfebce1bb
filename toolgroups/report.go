package toolgroups

import (
	"context"
	"fmt"
	"io"
)

const (
	// maxReport bounds a progress report, in bytes. A longer one is dropped, because half a secret
	// cannot be masked.
	maxReport = 4 << 10
	// megabyte is the number of bytes read between two reports.
	megabyte = 1_000_000
)

// reporterKey is the context key of the report function.
type reporterKey struct{}

// WithReporter returns a context in which tools can report progress. report must not block. It may be
// called from several goroutines and after the tool has ended.
func WithReporter(ctx context.Context, report func(step string)) context.Context {
	return context.WithValue(ctx, reporterKey{}, report)
}

// HasReporter reports whether progress is reported in this context.
func HasReporter(ctx context.Context) bool {
	_, told := ctx.Value(reporterKey{}).(func(string))
	return told
}

// Report reports the progress of a call in a few words, such as "page 2". It does not block.
func Report(ctx context.Context, step string) {
	if report, told := ctx.Value(reporterKey{}).(func(string)); told && len(step) <= maxReport {
		report(step)
	}
}

// Step returns the text of a progress report as one line of at most 32 characters.
func Step(text string) string { return oneLine(text, maxActivityArgument) }

// ReportingReader returns a reader that reports progress after each megabyte. total is the size in
// bytes; 0 or less means unknown.
func ReportingReader(ctx context.Context, from io.Reader, total int64) io.Reader {
	if !HasReporter(ctx) {
		return from
	}
	return &countingReader{from: from, report: func(n int64) {
		step := fmt.Sprintf("%d MB", n/megabyte)
		if total >= n {
			step = fmt.Sprintf("%d of %d MB", n/megabyte, (total+megabyte-1)/megabyte)
		}
		Report(ctx, step)
	}}
}

// countingReader counts the bytes read and calls report after each megabyte.
type countingReader struct {
	from   io.Reader
	report func(n int64)
	n      int64
}

// Read implements [io.Reader].
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	before := c.n
	if c.n += int64(n); c.n/megabyte > before/megabyte {
		c.report(c.n)
	}
	return n, err
}
