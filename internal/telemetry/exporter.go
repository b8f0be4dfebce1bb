package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// faultPause is how long nothing more is said of a collector that is out of order.
const faultPause = 10 * time.Minute

// exporter counts what a collector does not take. What becomes of spans does not concern the bot
// but the operator's, so none of it is an error.
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

// faults are logged now and then.
type faults struct {
	log    *slog.Logger
	now    func() time.Time
	redact func(error) error

	mu   sync.Mutex
	told time.Time
	lost int
}

// Handle implements otel.ErrorHandler, for what no call returns.
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
