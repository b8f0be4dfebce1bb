// Package outbox delivers answers to the platforms. [Sender] splits answers into parts, sends the parts
// in order, records the state of each, and waits while a platform is down. [PreviewTracker] shows
// answers while they are generated, on platforms that support it. A preview never delays its answer,
// which replaces it. [ReactionTracker] marks waiting messages as seen.
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
	// maxPutOff bounds the attempts to send a text that a working platform does not accept yet. With
	// pauses that grow to a minute, they take about three minutes.
	maxPutOff = 10
	// maxQuickEdits is the number of edits with an unknown outcome that soon follow each other, as in a short
	// outage. Each one trips the breaker, so that the sends of all chats wait for a probe.
	maxQuickEdits = 10
	// maxRepeatRetry bounds the pauses before a part with an unknown outcome is sent again (an hour on
	// average). They are long because every attempt may add another copy to the chat.
	maxRepeatRetry = 80 * time.Minute
)

// AnswerLimits bounds answers. The zero value of each means its default.
type AnswerLimits struct {
	// MaxParts bounds the messages of one answer. A longer answer is also sent as a file, if the
	// platform accepts files. 0 means [DefaultMaxParts], a negative value means no bound.
	MaxParts int `yaml:"max_parts" env:"ONECLAW_MAX_PARTS"`
}

// DefaultMaxParts is the default of [AnswerLimits].
const DefaultMaxParts = 10

// SenderConfig configures a [Sender]. Fields are required unless their comment says what nil or zero
// means.
type SenderConfig struct {
	// Platforms are all platforms, by name.
	Platforms map[string]chats.Platform
	// OwnsSafely reports whether certainly no other process owns the job now. Nil if no other process
	// uses the store.
	OwnsSafely func(j *queue.Run) bool
	// Redact masks secrets in outgoing text.
	Redact func(text string) string
	// Files keeps the workspaces in the store. Nil means that they are only on this disk.
	Files queue.FileStore
	// Tracer traces jobs; nil for none.
	Tracer  queue.Tracer
	Measure queue.Counter
	Log     *slog.Logger
	Now     func() time.Time
	// Jobs stores the state of deliveries.
	Jobs queue.Store
	// DeadLetters stores undeliverable answers.
	DeadLetters DeadLetterStore
	// DataDir holds the folder of workspaces.
	DataDir string
	AnswerLimits
	// MaxRetry bounds the pauses between attempts.
	MaxRetry time.Duration
	// MaxSends bounds the concurrent sends.
	MaxSends int
	Secrets  Secrets
	Queue    Queue
	// OnUnreachable is called if a chat takes no message from the bot; nil for nothing.
	OnUnreachable func(ctx context.Context, chat chats.Chat)
}

// DeadLetterStore stores dead letters.
type DeadLetterStore interface {
	// Add stores a dead letter.
	Add(ctx context.Context, d queue.DeadLetter) error
}

// Queue has the jobs whose answers are sent.
type Queue interface {
	// Context returns the context of jobs, which is also that of work outside of jobs.
	Context() context.Context
	// TryGo runs f outside of jobs, unless the queue is closing; see [queue.Queue.TryGo].
	TryGo(f func()) bool
	// IsWaiting reports whether the message with the given key waits in a chat.
	IsWaiting(chat chats.Chat, key string) bool
	// TargetChat returns the chat to which a chat has moved or is moving, otherwise the chat itself,
	// without a thread.
	TargetChat(chat chats.Chat) chats.Chat
}

// Secrets provides the secrets in answers, which no record contains.
type Secrets interface {
	// FillSecret replaces the [queue.SecretPlaceholder] in a part that is about to be sent.
	FillSecret(ctx context.Context, j *queue.Run, part chats.Part) (chats.Part, error)
}

// Sender delivers answers. Its only goroutines are those of [Sender.ShowTyping].
type Sender struct {
	cfg       SenderConfig
	breakers  map[string]*breaker // one for each platform
	sendSlots chan struct{}       // bounds concurrent sends
}

// NewSender returns a sender.
func NewSender(cfg SenderConfig) *Sender {
	if cfg.MaxParts = cmp.Or(cfg.MaxParts, DefaultMaxParts); cfg.MaxParts < 0 {
		cfg.MaxParts = math.MaxInt / partBytes
	}
	s := &Sender{cfg: cfg, breakers: make(map[string]*breaker), sendSlots: make(chan struct{}, cfg.MaxSends)}
	for name, p := range cfg.Platforms {
		s.breakers[name] = newBreaker(p, cfg.Log)
	}
	return s
}

// errMaybeLost is returned when another process may have taken over the chat.
var errMaybeLost = errors.New("outbox: cannot verify that this process still owns the chat")

// Deliver sends the unsent parts of a job, in order. When it returns nil, each part was sent or refused,
// or became a dead letter. After an error, a later call continues from the recorded state. The end of
// the context patience ends the waits between the requests; the end of ctx cancels the requests, too.
func (s *Sender) Deliver(ctx, patience context.Context, j *queue.Run) error {
	d := DeliveryOf(j)
	for i := 0; i < len(d.Parts); i++ {
		var tries *attempts
		for p := &d.Parts[i]; p.State != receipts.PartSent && p.State != receipts.PartFailed; p = &d.Parts[i] {
			send := s.trySend
			if p.ReplacesID != "" {
				send = s.finishPreview
			}
			sent := func(error) {}
			if s.cfg.Tracer != nil {
				sent = s.cfg.Tracer.StartSend(j, p)
			}
			err := send(ctx, patience, j, p)
			sent(err)
			if err == nil {
				if p.State == receipts.PartSent {
					j.RecordProgress() // stored with the next part
				}
				if p.Repeat && p.State == receipts.PartSent {
					s.cfg.Measure(j.Message.Chat.Platform, queue.MeasuredRepeat)
				}
				continue
			}
			if tries == nil {
				tries = &attempts{begun: s.cfg.Now(), repeatPauses: retry.New(minRetry, maxRepeatRetry), pauses: retry.New(minRetry, s.cfg.MaxRetry)}
			}
			if err = s.handleFailure(patience, j, p, tries, err); errors.Is(err, errOverdue) {
				err = s.giveUp(ctx, j, i)
			}
			if err != nil {
				return err
			}
		}
		d.OutageSince = time.Time{}
	}
	s.speak(ctx, patience, j)
	return nil
}

// handleFailure handles a failed attempt. It returns nil after a pause before the next attempt, or if
// the part was refused or replaced. It returns [errOverdue] if the platform has been down for a day.
func (s *Sender) handleFailure(patience context.Context, j *queue.Run, p *receipts.Part, tries *attempts, err error) error {
	failure, is := errors.AsType[*chats.SendError](err)
	if !is {
		return err
	}
	wait := tries.countFailure(failure, p.ReplacesID != "", s.breakers[j.Message.Chat.Platform].ping != nil)
	switch {
	case failure.Outcome == chats.Refused:
		return nil
	case p.File != nil && tries.isExhausted():
		s.replaceByNotice(j, p, err)
		return nil
	case errors.Is(failure, errNoSecret), p.File == nil && tries.ownFailures >= maxPutOff:
		return failure.Err // the platform works
	case failure.MovedTo != "":
		DeliveryOf(j).MovedTo = failure.MovedTo
	}
	s.cfg.Log.Warn("part not sent yet", "job", j.Key(), "state", p.State, "retry_after", failure.RetryAfter, "err", err)
	return s.waitBeforeRetry(patience, j, tries.begun, wait)
}

// attempts counts the failed attempts to send one part.
type attempts struct {
	begun                time.Time // time of the first
	unknown, other       int
	ownFailures          int // failures that are not an outage of the platform
	repeatPauses, pauses *retry.Backoff
}

// countFailure counts a failed attempt, and returns how long to wait before the next. isEdit says that the
// part replaces another, and so cannot arrive twice. isProbed says that the platform is probed before a send
// in an outage: then many edits that fail are no outage.
func (a *attempts) countFailure(failure *chats.SendError, isEdit, isProbed bool) time.Duration {
	switch {
	case failure.Outcome == chats.Unknown:
		switch a.unknown++; {
		case !isEdit:
			return a.repeatPauses.Next(failure.RetryAfter)
		case isProbed && a.unknown > maxQuickEdits:
			return a.pauses.Next(failure.RetryAfter)
		}
	case !failure.Outage:
		if a.other++; failure.RetryAfter == 0 && failure.MovedTo == "" {
			a.ownFailures++
		}
	}
	return pauseAfter(a.pauses, failure)
}

// pauseAfter returns the pause before a part that cannot arrive twice is retried. In an outage it is at
// most the breaker's pause.
func pauseAfter(pauses *retry.Backoff, failure *chats.SendError) time.Duration {
	wait := pauses.Next(0)
	if isOutage(failure) {
		wait = min(wait, maxOutagePause)
	}
	return max(wait, failure.RetryAfter)
}

// isExhausted reports whether sending a file was attempted often enough.
func (a *attempts) isExhausted() bool { return a.unknown >= maxFileUnknown || a.other >= maxFileTries }

// trySend sends a part once, when the platform works and a send slot is free. The part is recorded as
// being sent before the request, and as pending again if the platform did not accept it.
func (s *Sender) trySend(ctx, patience context.Context, j *queue.Run, p *receipts.Part) (err error) {
	if err := context.Cause(patience); err != nil {
		return err
	}
	k, probe := s.breakers[j.Message.Chat.Platform], false
	if k.isTripped.Load() {
		if probe, err = s.awaitPlatform(patience, j, k); err != nil {
			return err
		}
	}
	defer func() {
		if probe || err != nil {
			k.report(probe, err)
		}
	}()
	s.updateDestination(j)
	select {
	case s.sendSlots <- struct{}{}:
	case <-patience.Done():
		return context.Cause(patience)
	}
	defer func() { <-s.sendSlots }()
	ctx = s.withOwnership(ctx, j)
	call, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	d := DeliveryOf(j)
	if p.Once && !d.firstRecorded && (p.State == receipts.PartSending || p.State == receipts.PartUnknown) {
		p.State = receipts.PartSent
		return nil
	}
	if !d.firstRecorded || s.cfg.OwnsSafely != nil {
		if err := s.recordSending(call, j, p); err != nil {
			return err
		}
	}
	d.firstRecorded = false
	to, id := Address(j), ""
	err = request(func() (err error) {
		if p.File != nil {
			id, err = s.sendFile(ctx, j, to, p.Part)
		} else if d.Ephemeral {
			id, err = s.sendEphemeral(call, j, to, p.Part)
		} else {
			id, err = s.cfg.Platforms[to.Chat.Platform].Send(call, to, p.Part)
		}
		return err
	})
	switch {
	case isPanic(err):
		return err // the part may have arrived, as the record says
	case isLost(err):
		p.State = receipts.PartPending
		return err
	case err != nil:
		return s.recordFailure(ctx, j, p, toSendError(err))
	}
	p.State, p.ID, p.Error = receipts.PartSent, id, ""
	return nil
}

// isPanic reports whether a call to a platform panicked. A panic counts as a failed attempt of the job,
// not as an outage of the platform.
func isPanic(err error) bool {
	_, is := errors.AsType[*rescue.PanicError](err)
	return is
}

// isLost reports whether a call ended because this process may no longer own the job.
func isLost(err error) bool { return errors.Is(err, errMaybeLost) || errors.Is(err, queue.ErrLost) }

// updateDestination updates the destination of a job's answer if its chat has moved.
func (s *Sender) updateDestination(j *queue.Run) {
	if home := s.cfg.Queue.TargetChat(j.Message.Chat); home.ID != j.Message.Chat.ID {
		DeliveryOf(j).MovedTo = home.ID
	}
}

// recordFailure stores the state of a part that the platform did not accept, and returns the failure.
func (s *Sender) recordFailure(ctx context.Context, j *queue.Run, p *receipts.Part, failure *chats.SendError) error {
	p.Error = s.cfg.Redact(failure.Error())
	what := queue.MeasuredUnknown
	switch failure.Outcome {
	case chats.Refused:
		what = queue.MeasuredRefused
		if failure.Unreachable && s.cfg.OnUnreachable != nil {
			s.cfg.OnUnreachable(ctx, Address(j).Chat)
		}
		s.replaceRefused(j, p, failure)
	case chats.Later:
		// This attempt did not arrive; Repeat remembers an earlier one that may have arrived.
		what, p.State = queue.MeasuredPutOff, receipts.PartPending
		if failure.RetryAfter > 0 {
			what = queue.MeasuredDelayed
		}
	case chats.Unknown:
		p.State = receipts.PartUnknown
	}
	s.cfg.Measure(j.Message.Chat.Platform, what)
	// If the end of ctx cancelled the request, the record already says that the part is being sent.
	if failure.Outcome != chats.Unknown || ctx.Err() == nil {
		if err := s.cfg.Jobs.SaveAlways(ctx, j); err != nil {
			return fmt.Errorf("record a failed send: %w", err)
		}
	}
	return failure
}

// toSendError returns a platform's error as a SendError, with an unknown outcome if it is another error.
func toSendError(err error) *chats.SendError {
	failure, is := errors.AsType[*chats.SendError](err)
	if err != nil && !is {
		failure = &chats.SendError{Outcome: chats.Unknown, Err: err}
	}
	return failure
}

// recordSending marks a part as being sent in the job's record, unless it is marked. It returns an error
// if another process may be about to send the part.
func (s *Sender) recordSending(ctx context.Context, j *queue.Run, p *receipts.Part) error {
	if DeliveryOf(j).firstRecorded {
		return s.checkOwnership(j)
	}
	// The state may come from an earlier run: a part that was being sent then may have arrived.
	p.Repeat = p.Repeat || p.State == receipts.PartSending || p.State == receipts.PartUnknown
	before := p.State
	p.State = receipts.PartSending
	if err := s.cfg.Jobs.Save(ctx, j); err != nil {
		p.State = before
		return fmt.Errorf("record the start of a send: %w", err)
	}
	// The process may have been paused since the write.
	if err := s.checkOwnership(j); err != nil {
		p.State = before
		return err
	}
	return nil
}

// checkOwnership returns an error if another process may be about to send the parts of a job. It returns
// [queue.ErrLost] if the lease of the job has ended.
func (s *Sender) checkOwnership(j *queue.Run) error {
	switch {
	case s.cfg.OwnsSafely == nil || s.cfg.OwnsSafely(j):
		return nil
	case s.cfg.Jobs.LeaseToken(j.Message.Chat) != j.LeaseToken:
		return queue.ErrLost
	}
	return errMaybeLost
}

// withOwnership returns ctx with the precondition that this process owns a job: it may lose the job while the
// platform waits for a rate limit or a connection.
func (s *Sender) withOwnership(ctx context.Context, j *queue.Run) context.Context {
	if s.cfg.OwnsSafely == nil {
		return ctx
	}
	owned := &queue.Run{Job: queue.Job{Message: j.Message, LeaseToken: j.LeaseToken}} // a request may outlast its call
	return chats.WithPrecondition(ctx, func() error { return s.checkOwnership(owned) })
}

// request makes a call to a platform. If the precondition of withOwnership has kept it from a request, it
// returns that error alone, which says nothing about the platform.
func request(call func() error) error {
	err := rescue.Do(call)
	switch {
	case errors.Is(err, queue.ErrLost):
		return queue.ErrLost
	case errors.Is(err, errMaybeLost):
		return errMaybeLost
	}
	return err
}

// Edit edits messages in a chat, each to show its part. It retries until the platform has accepted or
// refused each edit. After an outage of a day, the job becomes a dead letter. Edit is idempotent.
func (s *Sender) Edit(ctx context.Context, j *queue.Run, chat chats.Chat, ids []string, parts []receipts.Part) error {
	editor, ok := s.cfg.Platforms[j.Message.Chat.Platform].(chats.Editor)
	if !ok {
		return nil
	}
	for i, id := range ids {
		if id == "" {
			continue // the part was never sent
		}
		err := s.edit(ctx, j, editor, chat, id, parts[i])
		if errors.Is(err, errOverdue) {
			return s.addDeadLetter(ctx, j, queue.NewIncident())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Sender) edit(ctx context.Context, j *queue.Run, editor chats.Editor, chat chats.Chat, id string, part receipts.Part) error {
	k, begun := s.breakers[j.Message.Chat.Platform], s.cfg.Now()
	for pauses := retry.New(minRetry, s.cfg.MaxRetry); ; {
		probe, err := s.awaitPlatform(ctx, j, k)
		if err != nil {
			return err
		}
		if err := s.checkOwnership(j); err != nil { // another replica may have edited it during the wait
			k.report(probe, err)
			return err
		}
		call, cancel := context.WithTimeout(s.withOwnership(ctx, j), sendTimeout)
		err = request(func() error { return editor.Edit(call, chats.Address{Chat: chat}, id, part.Part) })
		cancel()
		if isPanic(err) || isLost(err) {
			k.report(probe, err)
			return err
		}
		failure := toSendError(err)
		if failure == nil {
			k.report(probe, nil)
			return nil
		}
		k.report(probe, failure)
		if failure.Outcome == chats.Refused {
			if !failure.ContentRefused { // perhaps somebody has deleted it
				s.cfg.Log.Warn("a message could not be edited", "job", j.Key(), "err", failure)
				return nil
			}
			if s.replaceRefused(j, &part, failure); part.State == receipts.PartPending {
				continue
			}
			return nil
		}
		if err := s.waitBeforeRetry(ctx, j, begun, pauseAfter(pauses, failure)); err != nil {
			return err
		}
	}
}
