// Package outbox delivers answers to the platforms. [Sender] makes their parts, sends them in order
// with a record of each, and waits while a platform is down. [Previews] shows answers while they are
// made, on platforms whose messages can grow; a preview never delays an answer: it is skipped if the
// platform has no room for it, and the answer replaces it. [Reactions] marks waiting messages as seen.
package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
)

const (
	// sendTimeout bounds one attempt to send or edit a message, fileTimeout one to send a file.
	sendTimeout = time.Minute
	fileTimeout = 10 * time.Minute
	// minRetry is the first pause between attempts.
	minRetry = 500 * time.Millisecond
	// maxPutOff bounds the attempts at a text that the platform puts off although it works: with pauses
	// that grow to a minute about four minutes.
	maxPutOff = 10
	// maxRepeatRetry bounds the pauses before a part with an unknown outcome is sent again (an hour on
	// average): every attempt may put another copy into the chat.
	maxRepeatRetry = 80 * time.Minute
)

// AnswerLimits bounds answers. The zero value of each means its default.
type AnswerLimits struct {
	// MaxParts bounds the messages of one answer. A longer one is also sent as a file, if the platform
	// takes files. 0 means [DefaultMaxParts], a negative value no bound.
	MaxParts int `yaml:"max_parts" env:"ONECLAW_MAX_PARTS"`
}

// DefaultMaxParts is the default of [AnswerLimits].
const DefaultMaxParts = 10

// SenderConfig configures a [Sender]. All fields are required.
type SenderConfig struct {
	// Platforms are all platforms, by name.
	Platforms map[string]chats.Platform
	// Safe reports whether certainly no other process owns the job now. Nil if this one works alone.
	Safe func(j *queue.Run) bool
	// Redact masks secrets in what goes out.
	Redact func(text string) string
	// Files keeps the workspaces. Nil means that no other process uses this disk's.
	Files queue.Files
	// Trace traces jobs; nil for none.
	Trace   queue.Tracer
	Measure queue.Counter
	Log     *slog.Logger
	Now     func() time.Time
	// Jobs stores the state of deliveries.
	Jobs queue.Store
	// DeadLetters stores undeliverable answers.
	DeadLetters DeadLetters
	// DataDir holds the folder of workspaces.
	DataDir string
	AnswerLimits
	// MaxRetry bounds the pauses between attempts.
	MaxRetry time.Duration
	// MaxSends bounds the concurrent sends.
	MaxSends int
	Secrets  Secrets
	Queue    Queue
}

// DeadLetters stores dead letters.
type DeadLetters interface {
	// Add stores one.
	Add(ctx context.Context, d queue.DeadLetter) error
}

// Queue has the jobs whose answers are sent.
type Queue interface {
	// Context returns the context for work outside of jobs.
	Context() context.Context
	// TryGo runs such work, unless the queue is closing; see [queue.Queue.TryGo].
	TryGo(f func()) bool
	// IsWaiting reports whether a message of a chat waits.
	IsWaiting(chat chats.Chat, key string) bool
	// Forward returns the chat to which a chat has moved, or is moving.
	Forward(chat chats.Chat) chats.Chat
}

// Secrets provides the secrets that no record holds.
type Secrets interface {
	// Lift replaces the [queue.SecretPlaceholder] of a part when it is sent.
	Lift(ctx context.Context, j *queue.Run, part chats.Part) (chats.Part, error)
}

// Sender delivers answers. It has no goroutine of its own.
type Sender struct {
	cfg      SenderConfig
	breakers map[string]*breaker // one for each platform
	sends    chan struct{}       // bounds concurrent sends
}

// NewSender returns a sender.
func NewSender(cfg SenderConfig) *Sender {
	if cfg.MaxParts = cmp.Or(cfg.MaxParts, DefaultMaxParts); cfg.MaxParts < 0 {
		cfg.MaxParts = math.MaxInt / partBytes
	}
	s := &Sender{cfg: cfg, breakers: make(map[string]*breaker), sends: make(chan struct{}, cfg.MaxSends)}
	for name, p := range cfg.Platforms {
		s.breakers[name] = newBreaker(p, cfg.Log)
	}
	return s
}

// errMaybeLost says that another process may have taken over the chat.
var errMaybeLost = errors.New("outbox: this process has not proved for too long that it answers in this chat")

// Deliver sends the unsent parts, in order. When it returns nil, each was sent, refused, or is a dead
// letter; after an error the job has to continue later, from the recorded state. The end of patience
// ends the waits between the requests, the end of ctx the requests as well.
func (s *Sender) Deliver(ctx, patience context.Context, j *queue.Run) error {
	d := Of(j)
	for i := 0; i < len(d.Parts); i++ {
		var tries *attempts
		for p := &d.Parts[i]; p.State != receipts.PartSent && p.State != receipts.PartFailed; p = &d.Parts[i] {
			send := s.try
			if p.Edit != "" {
				send = s.finish
			}
			sent := func(error) {}
			if s.cfg.Trace != nil {
				sent = s.cfg.Trace.Sending(j, p)
			}
			err := send(ctx, patience, j, p)
			sent(err)
			if err == nil {
				if p.State == receipts.PartSent {
					j.Progressed() // stored with the next part
				}
				if p.Repeat && p.State == receipts.PartSent {
					s.cfg.Measure(j.Message.Chat.Platform, queue.MeasuredRepeat)
				}
				continue
			}
			if tries == nil {
				tries = &attempts{repeats: retry.New(minRetry, maxRepeatRetry), pauses: retry.New(minRetry, s.cfg.MaxRetry)}
			}
			if err = s.failed(patience, j, p, tries, err); errors.Is(err, errOverdue) {
				err = s.giveUp(ctx, j, i)
			}
			if err != nil {
				return err
			}
		}
		d.OutageSince = time.Time{}
	}
	return nil
}

// failed handles a failed attempt: it returns nil after a pause, or if nothing is left to try, and
// [errOverdue] if the platform has been down for a day.
func (s *Sender) failed(patience context.Context, j *queue.Run, p *receipts.Part, tries *attempts, err error) error {
	failure, is := errors.AsType[*chats.SendError](err)
	if !is {
		return err
	}
	wait := tries.note(failure)
	switch {
	case failure.Outcome == chats.Refused:
		s.cfg.Log.Error("part refused by the platform", "job", j.Key(), "err", err)
		return nil
	case p.File != nil && tries.exhausted():
		s.noticeInstead(j, p, err)
		return nil
	case errors.Is(failure, errUnlifted), p.File == nil && tries.own >= maxPutOff:
		return failure.Err // it is not the platform's fault
	case failure.MovedTo != "":
		Of(j).MovedTo = failure.MovedTo
	}
	s.cfg.Log.Warn("part not sent yet", "job", j.Key(), "state", p.State, "retry_after", failure.RetryAfter, "err", err)
	return s.waitAgain(patience, j, wait)
}

// attempts counts the attempts at one part.
type attempts struct {
	unknown, other  int
	own             int // failures that are not an outage of the platform
	repeats, pauses *retry.Pauses
}

// note counts a failed attempt and returns how long to wait before the next.
func (a *attempts) note(failure *chats.SendError) time.Duration {
	switch {
	case failure.Outcome == chats.Unknown:
		a.unknown++
		return a.repeats.Next(failure.RetryAfter)
	case !failure.Outage:
		if a.other++; failure.RetryAfter == 0 && failure.MovedTo == "" {
			a.own++
		}
	}
	return pauseAfter(a.pauses, failure)
}

// pauseAfter returns the pause before a part that cannot arrive twice is retried. In an outage it is at
// most the breaker's pause.
func pauseAfter(pauses *retry.Pauses, failure *chats.SendError) time.Duration {
	wait := pauses.Next(0)
	if isOutage(failure) {
		wait = min(wait, maxOutagePause)
	}
	return max(wait, failure.RetryAfter)
}

// exhausted reports whether a file was tried often enough.
func (a *attempts) exhausted() bool { return a.unknown >= maxFileUnknown || a.other >= maxFileTries }

// try sends a part once, when the platform works and not too many sends run. The record says sending
// before the request, and pending again if the platform did not accept it.
func (s *Sender) try(ctx, patience context.Context, j *queue.Run, p *receipts.Part) (err error) {
	if err := context.Cause(patience); err != nil {
		return err
	}
	k, probe := s.breakers[j.Message.Chat.Platform], false
	if k.out.Load() {
		if probe, err = s.waitInOrder(patience, j, k); err != nil {
			return err
		}
	}
	defer func() {
		if probe || err != nil {
			k.report(probe, err)
		}
	}()
	s.follow(j)
	select {
	case s.sends <- struct{}{}:
	case <-patience.Done():
		return context.Cause(patience)
	}
	defer func() { <-s.sends }()
	call, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	d := Of(j)
	if !d.ready || s.cfg.Safe != nil {
		if err := s.recordSending(call, j, p); err != nil {
			return err
		}
	}
	d.ready = false
	to, id := Address(j), ""
	err = rescue.Do(func() (err error) {
		if p.File != nil {
			id, err = s.sendFile(ctx, j, to, p.Part)
		} else if d.Ephemeral {
			id, err = s.sendEphemeral(call, j, to, p.Part)
		} else {
			id, err = s.cfg.Platforms[to.Chat.Platform].Send(call, to, p.Part)
		}
		return err
	})
	if panicked(err) {
		return err // it may have arrived, as the record says
	}
	if err != nil {
		return s.notSent(ctx, j, p, failureOf(err))
	}
	p.State, p.ID, p.Error = receipts.PartSent, id, ""
	return nil
}

// panicked reports whether a call of a platform panicked. That says nothing about the platform; the job
// loses a life.
func panicked(err error) bool {
	_, is := errors.AsType[*rescue.PanicError](err)
	return is
}

// follow moves a job to where its chat is now.
func (s *Sender) follow(j *queue.Run) {
	if home := s.cfg.Queue.Forward(j.Message.Chat); home.ID != j.Message.Chat.ID {
		Of(j).MovedTo = home.ID
	}
}

// notSent stores the outcome of a part that the platform did not accept.
func (s *Sender) notSent(ctx context.Context, j *queue.Run, p *receipts.Part, failure *chats.SendError) error {
	p.Error = s.cfg.Redact(failure.Error())
	what := queue.MeasuredUnknown
	switch failure.Outcome {
	case chats.Refused:
		what, p.State = queue.MeasuredRefused, receipts.PartFailed
		if p.File != nil {
			s.noticeInstead(j, p, failure)
		}
	case chats.Later:
		// It did not arrive this time; Repeat remembers an earlier attempt that may have arrived.
		what, p.State = queue.MeasuredPutOff, receipts.PartPending
		if failure.RetryAfter > 0 {
			what = queue.MeasuredDelayed
		}
	case chats.Unknown:
		p.State = receipts.PartUnknown
	}
	s.cfg.Measure(j.Message.Chat.Platform, what)
	// If the end of ctx cut it off, the record already says sending.
	if failure.Outcome != chats.Unknown || ctx.Err() == nil {
		if err := s.cfg.Jobs.SaveAlways(ctx, j); err != nil {
			return fmt.Errorf("record that a part was not sent: %w", err)
		}
	}
	return failure
}

// failureOf returns why a platform did not accept something; nil if it did.
func failureOf(err error) *chats.SendError {
	failure, is := errors.AsType[*chats.SendError](err)
	if err != nil && !is {
		failure = &chats.SendError{Outcome: chats.Unknown, Err: err}
	}
	return failure
}

// recordSending marks a part as being sent in the record, unless it is. It fails if another process may
// be about to send it.
func (s *Sender) recordSending(ctx context.Context, j *queue.Run, p *receipts.Part) error {
	if Of(j).ready {
		return s.checkOwnership(j)
	}
	// The recorded state may be from a former life: a part that was being sent may have arrived.
	p.Repeat = p.Repeat || p.State == receipts.PartSending || p.State == receipts.PartUnknown
	before := p.State
	p.State = receipts.PartSending
	if err := s.cfg.Jobs.Save(ctx, j); err != nil {
		p.State = before
		return fmt.Errorf("record that a part is being sent: %w", err)
	}
	// The process may have been paused since that check.
	if err := s.checkOwnership(j); err != nil {
		p.State = before
		return err
	}
	return nil
}

// checkOwnership returns an error if another process may be about to send for a job. A job of an expired lease,
// queued while the chat was being given away, is lost.
func (s *Sender) checkOwnership(j *queue.Run) error {
	switch {
	case s.cfg.Safe == nil || s.cfg.Safe(j):
		return nil
	case s.cfg.Jobs.LeaseToken(j.Message.Chat) != j.LeaseToken:
		return queue.ErrLost
	}
	return errMaybeLost
}

// Edit edits messages of a chat, each to show its part. It tries until they do or cannot, and drops
// what the platform does not accept for a day. It is idempotent.
func (s *Sender) Edit(ctx context.Context, j *queue.Run, chat chats.Chat, ids []string, parts []receipts.Part) error {
	editor, ok := s.cfg.Platforms[j.Message.Chat.Platform].(chats.Editor)
	if !ok {
		return nil
	}
	for i, id := range ids {
		if id == "" {
			continue // it was never sent
		}
		err := s.edit(ctx, j, editor, chat, id, parts[i].Part)
		if errors.Is(err, errOverdue) {
			return s.keepDeadLetter(ctx, j, queue.NewIncident())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Sender) edit(ctx context.Context, j *queue.Run, editor chats.Editor, chat chats.Chat, id string, part chats.Part) error {
	k := s.breakers[j.Message.Chat.Platform]
	for pauses := retry.New(minRetry, s.cfg.MaxRetry); ; {
		probe, err := s.waitInOrder(ctx, j, k)
		if err != nil {
			return err
		}
		if err := s.checkOwnership(j); err != nil { // another replica may have edited it during the wait
			k.report(probe, err)
			return err
		}
		call, cancel := context.WithTimeout(ctx, sendTimeout)
		err = rescue.Do(func() error { return editor.Edit(call, chats.Address{Chat: chat}, id, part) })
		cancel()
		if panicked(err) {
			k.report(probe, err)
			return err
		}
		failure := failureOf(err)
		if failure == nil {
			k.report(probe, nil)
			return nil
		}
		k.report(probe, failure)
		if failure.Outcome == chats.Refused {
			s.cfg.Log.Warn("a message could not be edited", "job", j.Key(), "err", failure)
			return nil
		}
		if err := s.waitAgain(ctx, j, pauseAfter(pauses, failure)); err != nil {
			return err
		}
	}
}
