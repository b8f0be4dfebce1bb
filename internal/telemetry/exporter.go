package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// faultPause is the pause between messages about a failing collector.
const faultPause = 10 * time.Minute

// exporter counts spans that a collector refuses. Lost spans do not concern the bot's users, so
// none of it is an error.
type exporter struct {
	sdk.SpanExporter

	faults *faults
}

// ExportSpans sends spans. It is called by the goroutine of the queue, which is bounded.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.faults.note(err, len(spans))
	}
	return nil
}

// faults limits how often faults are logged.
type faults struct {
	log    *slog.Logger
	now    func() time.Time
	redact func(error) error

	mu   sync.Mutex
	told time.Time
	lost int
}

// Handle implements otel.ErrorHandler, for errors that no call returns.
func (f *faults) Handle(err error) { f.note(err, 0) }

func (f *faults) note(err error, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost += lost
	now := f.now()
	if now.Sub(f.told).Abs() < faultPause {
		return
	}
	f.log.Warn("traces cannot be exported", "lost", f.lost, "err", f.redact(err))
	f.told, f.lost = now, 0
}
