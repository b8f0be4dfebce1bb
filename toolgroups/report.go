package toolgroups

import (
	"context"
	"fmt"
	"io"
)

const (
	// maxReport bounds what a tool says about how far it is, in bytes. Half a secret cannot
	// be masked, so what is longer is left out.
	maxReport = 4 << 10
	// megabyte is how much is read between two reports.
	megabyte = 1_000_000
)

// reporter is the key of a reporter in a context.
type reporter struct{}

// Reporting returns a context in which a tool can tell how far it is. Report is called
// from several goroutines, perhaps after the tool has ended.
func Reporting(ctx context.Context, report func(step string)) context.Context {
	return context.WithValue(ctx, reporter{}, report)
}

// Reports reports whether an observer is told how far the call of a context is.
func Reports(ctx context.Context) bool {
	_, told := ctx.Value(reporter{}).(func(string))
	return told
}

// Report tells people how far the call of a context is, in a few words: "page 2". It never
// waits.
func Report(ctx context.Context, step string) {
	if report, told := ctx.Value(reporter{}).(func(string)); told && len(step) <= maxReport {
		report(step)
	}
}

// Step is what a tool has said about how far it is, in one line of at most 32 characters.
func Step(text string) string { return oneLine(text, maxNamed) }

// Reading returns a reader that reports each megabyte; total is how much there is in bytes,
// unless that is not known.
func Reading(ctx context.Context, from io.Reader, total int64) io.Reader {
	if !Reports(ctx) {
		return from
	}
	return &counting{from: from, report: func(n int64) {
		step := fmt.Sprintf("%d MB", n/megabyte)
		if total >= n {
			step = fmt.Sprintf("%d of %d MB", n/megabyte, (total+megabyte-1)/megabyte)
		}
		Report(ctx, step)
	}}
}

// counting is a reader that counts.
type counting struct {
	from   io.Reader
	report func(n int64)
	n      int64
}

// Read implements [io.Reader].
func (c *counting) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	before := c.n
	if c.n += int64(n); c.n/megabyte > before/megabyte {
		c.report(c.n)
	}
	return n, err
}
