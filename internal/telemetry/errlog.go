package telemetry

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/wording"
)

const (
	// MaxErrors bounds the warnings and errors that are kept.
	MaxErrors = 200
	// maxErrorText bounds the text of an error, in characters.
	maxErrorText = 2000
)

// Error is a warning or an error of the log.
type Error struct {
	At    time.Time
	Level slog.Level
	// Text is the message, Cause the attribute err, Details the other attributes as name=value.
	// Secrets are masked.
	Text, Cause, Details string
	// Remedy is what an administrator has to do about the error, if the log names it.
	Remedy string `json:",omitempty"`
	// Incident is the id shown in the chat, Job the key of the job, Chat
	// its chat and User its user, as platform:id. Unknown ones are empty.
	Incident, Job, Chat, User string
}

// Why returns what to do about an error, if known, and its cause.
func (e Error) Why() string {
	if e.Remedy == "" {
		return e.Cause
	}
	return e.Remedy + " (" + e.Cause + ")"
}

// Ring keeps the last warnings and errors. It may be used concurrently. A nil Ring keeps
// nothing; Arrived and Take must not be called on it.
type Ring struct {
	mask    func(string) string
	arrived chan struct{}

	mu      sync.Mutex
	all     []Error
	next    int     // index of the oldest one, once there are MaxErrors
	untaken []Error // errors not returned by Take yet, at most MaxErrors
}

// NewRing makes a ring that masks secrets in what it keeps.
func NewRing(mask func(string) string) *Ring {
	return &Ring{mask: mask, arrived: make(chan struct{}, 1)}
}

// Arrived returns a channel that receives a value when there are errors for Take.
func (r *Ring) Arrived() <-chan struct{} { return r.arrived }

// Take returns the errors, without warnings, since the last call, the oldest first, at most the
// last [MaxErrors].
func (r *Ring) Take() []Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.untaken
	r.untaken = nil
	return all
}

// Drop removes the warnings and errors for which theirs returns true, those of a user to be forgotten.
func (r *Ring) Drop(theirs func(Error) bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(slices.Concat(r.all[r.next:], r.all[:r.next]), theirs)
	r.untaken, r.next = slices.DeleteFunc(r.untaken, theirs), 0
}

// Last returns the warnings and errors, the newest first.
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
	for _, text := range []*string{&one.Text, &one.Cause, &one.Details, &one.Remedy, &one.Incident, &one.Job, &one.Chat, &one.User} {
		*text = wording.Clip(r.mask(*text), maxErrorText)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.Level >= slog.LevelError {
		r.untaken = append(r.untaken[max(0, len(r.untaken)-MaxErrors+1):], one)
		select {
		case r.arrived <- struct{}{}:
		default:
		}
	}
	if len(r.all) < MaxErrors {
		r.all = append(r.all, one)
		return
	}
	r.all[r.next] = one
	r.next = (r.next + 1) % MaxErrors
}

// WrapHandler returns a handler that keeps warnings and errors, and passes everything on to inner.
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

// Enabled implements [slog.Handler]. Warnings and errors are kept at any log level.
func (h errorHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.Handler.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h errorHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		one := h.attrs
		record.Attrs(func(a slog.Attr) bool {
			h.setField(&one, a)
			return true
		})
		one.At, one.Level, one.Text, one.Details = record.Time, record.Level, record.Message, strings.TrimSpace(one.Details)
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
	case "chat":
		to.Chat = value
	case "user":
		to.User = value
	default:
		to.Details += h.group + a.Key + "=" + value + " "
	}
}
