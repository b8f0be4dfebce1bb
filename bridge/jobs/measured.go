package jobs

import (
	"context"
	"log/slog"
	"time"

	"oneclaw/bridge/chats"
)

// Measured is something that a bridge counts. The values are a closed set.
type Measured string

// What is counted.
const (
	// MeasuredAccepted: a message, a command or a press is on disk. Duplicates are not
	// counted.
	MeasuredAccepted Measured = "accepted"
	// MeasuredDelivered and MeasuredFailed: an answer has arrived, or a part of it was
	// given up.
	MeasuredDelivered Measured = "delivered"
	MeasuredFailed    Measured = "failed"
	// MeasuredRepeat: a part was sent that may have arrived before, and says so.
	MeasuredRepeat Measured = "repeat"
	// MeasuredRefused, MeasuredDelayed, MeasuredPutOff and MeasuredUnknown: a try to send
	// was refused for good, for as long as the platform said, for now, or nobody knows.
	MeasuredRefused Measured = "send_refused"
	MeasuredDelayed Measured = "send_delayed"
	MeasuredPutOff  Measured = "send_put_off"
	MeasuredUnknown Measured = "send_unknown"
	// MeasuredAsked and those after it: an approval was asked for, and what the turn that
	// waited for it found.
	MeasuredAsked   Measured = "approval_asked"
	MeasuredAllowed Measured = "approval_allowed"
	MeasuredDenied  Measured = "approval_denied"
	MeasuredExpired Measured = "approval_expired"
	// MeasuredGood and MeasuredBad: somebody says so of an answer. MeasuredWithdrawn:
	// somebody says it no more.
	MeasuredGood      Measured = "opinion_good"
	MeasuredBad       Measured = "opinion_bad"
	MeasuredWithdrawn Measured = "opinion_withdrawn"
)

// Meter is told what is to be counted, by the name of the platform. It is
// called from several goroutines and must not wait.
type Meter func(platform string, what Measured)

// Shared is what all rooms know. All of it is needed.
type Shared struct {
	// Platforms are all there are, by name.
	Platforms map[string]chats.Platform
	// Owns reports whether this process answers in a chat.
	Owns func(chat chats.Chat) bool
	// Safe reports whether a job is certainly not another process's at this moment. Nil where
	// this process works alone.
	Safe func(j *Job) bool
	// Redact masks secrets in what goes out.
	Redact func(text string) string
	// Spell writes the commands in a text as people do on a platform.
	Spell func(platform, text string) string
	// Files keeps the workspaces. Nil means that nobody else has this disk's.
	Files Files
	// Trace follows jobs; nil where nobody does.
	Trace Tracer
	// Keep writes what people do; see [Deed].
	Keep func(ctx context.Context, d Deed) error
	// Measure counts, Log is for the operator, Now is the clock.
	Measure Meter
	Log     *slog.Logger
	Now     func() time.Time
}

// Alone reports whether no other process may work with the store.
func (s Shared) Alone() bool { return s.Safe == nil }
