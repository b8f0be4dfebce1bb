package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// WrapLogger returns a logger that adds trace ids: from the context, else from the job that a line
// names. A nil tracer returns the logger itself.
func (t *Tracer) WrapLogger(log *slog.Logger) *slog.Logger {
	if t == nil {
		return log
	}
	return slog.New(&traceHandler{Handler: log.Handler(), tracer: t})
}

type traceHandler struct {
	slog.Handler

	tracer *Tracer
	// job is the key of the job that all lines name.
	job string
}

// Handle implements slog.Handler.
func (h *traceHandler) Handle(ctx context.Context, line slog.Record) error {
	if c := h.spanContext(ctx, line); c.IsValid() {
		line = line.Clone()
		line.AddAttrs(slog.String("trace_id", c.TraceID().String()), slog.String("span_id", c.SpanID().String()))
	}
	return h.Handler.Handle(ctx, line)
}

func (h *traceHandler) spanContext(ctx context.Context, line slog.Record) trace.SpanContext {
	if r, ok := ctx.Value(spansKey{}).(jobSpans); ok {
		return r.turn.SpanContext()
	}
	job := h.job
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == jobKey {
			job = a.Value.String()
		}
		return a.Key != jobKey
	})
	if job == "" {
		return trace.SpanContext{}
	}
	r, ok := h.tracer.spansByJob.Get(job)
	if !ok {
		return trace.SpanContext{}
	}
	return r.message.SpanContext()
}

// jobKey is the attribute with the key of a job.
const jobKey = "job"

// WithAttrs implements slog.Handler.
func (h *traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := &traceHandler{h.Handler.WithAttrs(attrs), h.tracer, h.job}
	for _, a := range attrs {
		if a.Key == jobKey {
			with.job = a.Value.String()
		}
	}
	return with
}

// WithGroup implements slog.Handler.
func (h *traceHandler) WithGroup(name string) slog.Handler {
	return &traceHandler{h.Handler.WithGroup(name), h.tracer, h.job}
}
