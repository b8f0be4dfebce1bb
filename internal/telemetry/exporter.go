package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// faultLogInterval is the minimum time between log lines about a failing collector.
const faultLogInterval = 10 * time.Minute

// exporter counts spans that a collector refuses. Lost spans do
// not concern the bot's users, so they are not logged as errors.
type exporter struct {
	sdk.SpanExporter

	faults *faultLog
}

// ExportSpans sends spans. It records a failure in faults and returns nil. The goroutine of the span
// processor calls it, whose queue is bounded.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.faults.record(err, len(spans))
	}
	return nil
}

// faultLog limits how often faults are logged.
type faultLog struct {
	log    *slog.Logger
	now    func() time.Time
	redact func(error) error

	mu       sync.Mutex
	loggedAt time.Time
	lost     int
}

// Handle implements otel.ErrorHandler, for errors that no call returns.
func (f *faultLog) Handle(err error) { f.record(err, 0) }

func (f *faultLog) record(err error, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost += lost
	now := f.now()
	if now.Sub(f.loggedAt).Abs() < faultLogInterval {
		return
	}
	f.log.Warn("traces cannot be exported", "lost", f.lost, "err", f.redact(err))
	f.loggedAt, f.lost = now, 0
}
