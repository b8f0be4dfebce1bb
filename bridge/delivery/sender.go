// Package delivery carries answers to the platforms: it makes their parts, sends these in
// order with a record of each, and waits while a platform is out of order.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/internal/retry"
)

const (
	// sendTimeout bounds one try to send or edit a message, fileTimeout one to send a file.
	sendTimeout = time.Minute
	fileTimeout = 10 * time.Minute
	// minRetry and maxRetry bound the pauses between tries.
	minRetry = 500 * time.Millisecond
	maxRetry = time.Minute
	// maxRepeatRetry bounds the pauses before a part is sent once more whose fate is unknown
	// each time (an hour on average): every try may put another copy in the chat.
	maxRepeatRetry = 80 * time.Minute
)

// Config is what a [Sender] is made of. All of it is needed.
type Config struct {
	// Platforms take the answers, by their names.
	Platforms map[string]chats.Platform
	// Jobs keeps how far each delivery is.
	Jobs jobs.Store
	// Asides keeps what no platform took.
	Asides jobs.Asides
	// DataDir holds the folder of workspaces.
	DataDir string
	// Redact masks secrets.
	Redact func(text string) string
	// MaxParts bounds the messages of one answer. What is longer is sent as a file besides,
	// where the platform takes files. A negative value is no bound.
	MaxParts int
	// MaxSends bounds the sends that are made at the same time.
	MaxSends int
	// Home returns the chat as which a chat goes on that moves or has moved.
	Home func(chat chats.Chat) chats.Chat
	// Measure counts.
	Measure jobs.Meter
	// Log is for the operator.
	Log *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// Sender delivers answers. It has no goroutine of its own.
type Sender struct {
	cfg      Config
	breakers map[string]*breaker // one for each platform
	sends    chan struct{}       // bounds the sends
}

// New returns a sender.
func New(cfg Config) *Sender {
	s := &Sender{cfg: cfg, breakers: make(map[string]*breaker), sends: make(chan struct{}, cfg.MaxSends)}
	for name, p := range cfg.Platforms {
		s.breakers[name] = newBreaker(p, cfg.Log)
	}
	return s
}

// Begin marks the first part of a job as being sent, where its platform is in order. The
// caller writes the job, and [Sender.Deliver] begins with the request.
func (s *Sender) Begin(j *jobs.Job) {
	if len(j.Parts) > 0 && !s.breakers[j.Message.Chat.Platform].down() {
		j.Parts[0].State, j.Parts[0].Ready = jobs.PartSending, true
	}
}

// Deliver sends the parts that have not been sent, in order. When it returns nil, each is
// sent, refused or set aside; an error means that the job has to go on later, and the job
// then says where. The end of patience ends the waits between the requests, the end of ctx
// the requests as well.
func (s *Sender) Deliver(ctx, patience context.Context, j *jobs.Job) error {
	for i := 0; i < len(j.Parts); i++ {
		err := s.deliverPart(ctx, patience, j, &j.Parts[i])
		if errors.Is(err, errOverdue) {
			if err = s.giveUp(ctx, j, i); err == nil {
				err = s.deliverPart(ctx, patience, j, &j.Parts[i])
			}
		}
		if err != nil {
			return err
		}
		j.Held = time.Time{}
	}
	return nil
}

// deliverPart tries until the part is sent or refused. While the platform is out of order
// it waits, and ends with [errOverdue] after a day.
func (s *Sender) deliverPart(ctx, patience context.Context, j *jobs.Job, p *jobs.SentPart) error {
	tries := newAttempts()
	for p.State != jobs.PartSent && p.State != jobs.PartFailed {
		err := s.inOrder(patience, j, func() error {
			if home := s.cfg.Home(j.Message.Chat); home.ID != j.Message.Chat.ID {
				j.MovedTo = home.ID
			}
			return s.tryInTurn(ctx, patience, j, p)
		})
		if err == nil {
			continue
		}
		failure, is := errors.AsType[*chats.SendError](err)
		if !is {
			return err
		}
		wait := tries.note(failure)
		switch {
		case failure.Outcome == chats.Refused:
			s.cfg.Log.Error("part refused by the platform", "job", j.Key(), "err", err)
			continue
		case p.File != nil && tries.hopeless():
			s.noticeInstead(j, p, err)
			continue
		case failure.MovedTo != "":
			j.MovedTo = failure.MovedTo
		}
		s.cfg.Log.Warn("part not sent yet", "job", j.Key(), "state", p.State, "retry_after", failure.RetryAfter, "err", err)
		if err := s.waitAgain(patience, j, failure, wait); err != nil {
			return err
		}
	}
	return nil
}

// attempts counts the tries to send one part.
type attempts struct {
	unknown, other  int
	repeats, pauses *retry.Pauses
}

func newAttempts() attempts {
	return attempts{repeats: retry.New(minRetry, maxRepeatRetry), pauses: retry.New(minRetry, maxRetry)}
}

// note counts a try in vain and returns how long to wait before the next.
func (a *attempts) note(failure *chats.SendError) time.Duration {
	switch {
	case failure.Outcome == chats.Unknown:
		a.unknown++
		return a.repeats.Next(failure.RetryAfter)
	case !failure.Outage:
		a.other++
	}
	return a.pauses.Next(failure.RetryAfter)
}

// hopeless reports whether a file that was tried so often is not tried again.
func (a *attempts) hopeless() bool { return a.unknown >= maxFileUnknown || a.other >= maxFileTries }

// tryInTurn sends a part once, when there are not too many sends.
func (s *Sender) tryInTurn(ctx, patience context.Context, j *jobs.Job, p *jobs.SentPart) error {
	select {
	case s.sends <- struct{}{}:
	case <-patience.Done():
		return context.Cause(patience)
	}
	defer func() { <-s.sends }()
	return s.try(ctx, j, p)
}

// try sends a part once and keeps its state on disk: sending before the request, pending
// again where the platform did not take it.
func (s *Sender) try(ctx context.Context, j *jobs.Job, p *jobs.SentPart) error {
	timeout := sendTimeout
	if p.File != nil {
		timeout = fileTimeout
	}
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.recordSending(call, j, p); err != nil {
		return err
	}
	to := j.Address()
	id, err := s.send(call, j, to, p.Part)
	failure := failureOf(err)
	s.measure(to.Chat.Platform, p.Repeat, failure)
	if failure == nil {
		p.State, p.ID, p.Error = jobs.PartSent, id, ""
		return nil
	}
	p.Error = s.cfg.Redact(err.Error())
	switch failure.Outcome {
	case chats.Refused:
		p.State = jobs.PartFailed
		if p.File != nil {
			s.noticeInstead(j, p, failure)
		}
	case chats.Later:
		// Not arrived this time; a former try that may have is remembered by Repeat.
		p.State = jobs.PartPending
	case chats.Unknown:
		p.State = jobs.PartUnknown
	}
	// Of what the end of ctx broke off, the record says sending already.
	if failure.Outcome != chats.Unknown || ctx.Err() == nil {
		if err := s.cfg.Jobs.SaveAlways(ctx, j); err != nil {
			return fmt.Errorf("record that a part was not sent: %w", err)
		}
	}
	return failure
}

// failureOf says why a platform did not take something; nil where it did.
func failureOf(err error) *chats.SendError {
	failure, is := errors.AsType[*chats.SendError](err)
	if err != nil && !is {
		failure = &chats.SendError{Outcome: chats.Unknown, Err: err}
	}
	return failure
}

// recordSending has the record say that a part is being sent, unless it does already.
func (s *Sender) recordSending(ctx context.Context, j *jobs.Job, p *jobs.SentPart) error {
	if p.Ready {
		p.Ready = false
		return nil
	}
	// The state on disk may be of a former life: what was being sent may have arrived.
	p.Repeat = p.Repeat || p.State == jobs.PartSending || p.State == jobs.PartUnknown
	before := p.State
	p.State = jobs.PartSending
	if err := s.cfg.Jobs.Save(ctx, j); err != nil {
		p.State = before
		return fmt.Errorf("record that a part is being sent: %w", err)
	}
	return nil
}

// measure counts what became of a try to send a part.
func (s *Sender) measure(platform string, repeat bool, failure *chats.SendError) {
	switch {
	case failure == nil:
		if repeat {
			s.cfg.Measure.Count(platform, jobs.MeasuredRepeat)
		}
	case failure.Outcome == chats.Unknown:
		s.cfg.Measure.Count(platform, jobs.MeasuredUnknown)
	case failure.Outcome == chats.Refused:
		s.cfg.Measure.Count(platform, jobs.MeasuredRefused)
	case failure.RetryAfter > 0:
		s.cfg.Measure.Count(platform, jobs.MeasuredDelayed)
	default:
		s.cfg.Measure.Count(platform, jobs.MeasuredPutOff)
	}
}

// Edit has messages of a chat show other parts, each in place of its own. It tries until they do or
// cannot, and sets aside what the platform does not take for a day. Doing it again does no
// harm.
func (s *Sender) Edit(ctx context.Context, j *jobs.Job, chat chats.Chat, ids []string, parts []jobs.SentPart) error {
	editor, ok := s.cfg.Platforms[j.Message.Chat.Platform].(chats.Editor)
	if !ok {
		return nil
	}
	for i, id := range ids {
		if id == "" {
			continue // its sending was lost
		}
		err := s.edit(ctx, j, editor, chat, id, parts[i].Part)
		if errors.Is(err, errOverdue) {
			return s.setAside(ctx, j, jobs.NewIncident())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Sender) edit(ctx context.Context, j *jobs.Job, editor chats.Editor, chat chats.Chat, id string, part chats.Part) error {
	for pauses := retry.New(minRetry, maxRetry); ; {
		err := s.inOrder(ctx, j, func() error {
			call, cancel := context.WithTimeout(ctx, sendTimeout)
			defer cancel()
			if failure := failureOf(editor.Edit(call, chats.Address{Chat: chat}, id, part)); failure != nil {
				return failure
			}
			return nil
		})
		failure, is := errors.AsType[*chats.SendError](err)
		if !is {
			return err
		}
		if failure.Outcome == chats.Refused {
			s.cfg.Log.Warn("a message could not be edited", "job", j.Key(), "err", err)
			return nil
		}
		if err := s.waitAgain(ctx, j, failure, pauses.Next(failure.RetryAfter)); err != nil {
			return err
		}
	}
}
