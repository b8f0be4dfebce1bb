package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/wording"
)

const (
	// MaxErrors is how many are kept.
	MaxErrors = 200
	// maxIncident bounds what is kept of one, in characters.
	maxIncident = 2000
)

// Error is a warning or an error of the log.
type Error struct {
	At    time.Time
	Level slog.Level
	// Text is the message, Details the attributes as name=value. Secrets in them are masked.
	Text, Details string
}

// Ring keeps the last incidents. It may be used concurrently. Nil keeps nothing.
type Ring struct {
	mask func(string) string

	mu   sync.Mutex
	all  []Error
	next int // where the oldest is, once there are Most
}

// NewIncidents makes a ring that masks secrets in what it keeps.
func NewIncidents(mask func(string) string) *Ring { return &Ring{mask: mask} }

// Last returns the incidents, the newest first.
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

func (r *Ring) keep(one Error) {
	one.Text, one.Details = wording.Clip(r.mask(one.Text), maxIncident), wording.Clip(r.mask(one.Details), maxIncident)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) < MaxErrors {
		r.all = append(r.all, one)
		return
	}
	r.all[r.next] = one
	r.next = (r.next + 1) % MaxErrors
}

// Handler returns a incidentHandler that keeps what is a warning or an error, and gives all to another.
func (r *Ring) Handler(inner slog.Handler) slog.Handler {
	if r == nil {
		return inner
	}
	return incidentHandler{Handler: inner, ring: r}
}

type incidentHandler struct {
	slog.Handler

	ring *Ring
	// attrs are those of the logger as text, group what their names begin with.
	attrs, group string
}

// Enabled implements [slog.Handler]: incidents are kept whatever is logged.
func (h incidentHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.Handler.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h incidentHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		var details strings.Builder
		details.WriteString(h.attrs)
		record.Attrs(func(a slog.Attr) bool {
			h.add(&details, a)
			return true
		})
		h.ring.keep(Error{At: record.Time, Level: record.Level, Text: record.Message, Details: strings.TrimSpace(details.String())})
	}
	if !h.Handler.Enabled(ctx, record.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements [slog.Handler].
func (h incidentHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var text strings.Builder
	text.WriteString(h.attrs)
	for _, a := range attrs {
		h.add(&text, a)
	}
	h.attrs, h.Handler = text.String(), h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements [slog.Handler].
func (h incidentHandler) WithGroup(name string) slog.Handler {
	h.group, h.Handler = h.group+name+".", h.Handler.WithGroup(name)
	return h
}

func (h incidentHandler) add(to *strings.Builder, a slog.Attr) {
	if !a.Equal(slog.Attr{}) {
		to.WriteString(h.group + a.Key + "=" + a.Value.Resolve().String() + " ")
	}
}
