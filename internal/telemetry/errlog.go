package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"oneclaw/internal/wording"
)

const (
	// MaxErrors bounds the errors that are kept.
	MaxErrors = 200
	// maxErrorText bounds the text of an error, in characters.
	maxErrorText = 2000
)

// Error is an error of the log.
type Error struct {
	At time.Time
	// Text is the message, Cause the attribute err, and Remedy what an administrator has to do about the error.
	// Secrets are masked.
	Text, Cause, Remedy string
	// Incident is the id shown in the chat, Job the key of the job, Platform the platform that does not work. Unknown
	// ones are empty.
	Incident, Job, Platform string
}

// Why returns what to do about an error, if known, and its cause.
func (e Error) Why() string {
	if e.Remedy == "" {
		return e.Cause
	}
	return e.Remedy + " (" + e.Cause + ")"
}

// Ring keeps the last errors of the log, in memory. It may be used concurrently. A nil Ring keeps nothing.
type Ring struct {
	mask func(string) string

	mu   sync.Mutex
	all  []Error
	next int // index of the oldest one, once there are MaxErrors
}

// NewRing makes a ring that masks secrets in what it keeps.
func NewRing(mask func(string) string) *Ring {
	return &Ring{mask: mask}
}

// Last returns the errors, the newest first.
func (r *Ring) Last() []Error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := make([]Error, 0, len(r.all))
	for i := range r.all {
		last = append(last, r.all[(r.next+len(r.all)-1-i)%len(r.all)])
	}
	return last
}

func (r *Ring) add(one Error) {
	for _, text := range []*string{&one.Text, &one.Cause, &one.Remedy, &one.Incident, &one.Job, &one.Platform} {
		*text = wording.Clip(r.mask(*text), maxErrorText)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) < MaxErrors {
		r.all = append(r.all, one)
		return
	}
	r.all[r.next] = one
	r.next = (r.next + 1) % MaxErrors
}

// WrapHandler returns a handler that keeps errors, and passes everything on to inner.
func (r *Ring) WrapHandler(inner slog.Handler) slog.Handler {
	if r == nil {
		return inner
	}
	return errorHandler{Handler: inner, ring: r}
}

type errorHandler struct {
	slog.Handler

	ring *Ring
	// attrs has the attributes of the logger, group is the prefix of further ones.
	attrs Error
	group string
}

// Enabled implements [slog.Handler]. Errors are kept at any log level.
func (h errorHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError || h.Handler.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h errorHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelError {
		one := h.attrs
		record.Attrs(func(a slog.Attr) bool {
			h.setField(&one, a)
			return true
		})
		one.At, one.Text = record.Time, record.Message
		h.ring.add(one)
	}
	if !h.Handler.Enabled(ctx, record.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements [slog.Handler].
func (h errorHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.setField(&h.attrs, a)
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements [slog.Handler].
func (h errorHandler) WithGroup(name string) slog.Handler {
	h.group, h.Handler = h.group+name+".", h.Handler.WithGroup(name)
	return h
}

// setField sets the field of an error for an attribute.
func (h errorHandler) setField(to *Error, a slog.Attr) {
	if a.Equal(slog.Attr{}) {
		return
	}
	value := a.Value.Resolve().String()
	switch h.group + a.Key {
	case "err":
		to.Cause = value
	case "remedy":
		to.Remedy = value
	case "incident":
		to.Incident = value
	case "job":
		to.Job = value
	case "platform":
		to.Platform = value
	}
}
