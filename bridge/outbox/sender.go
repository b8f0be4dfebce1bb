// Package outbox carries answers to the platforms. [Sender] makes their parts, sends these in
// order with a record of each, and waits while a platform is out of order. [Previews] show answers
// while they are made, on platforms where messages can grow; a preview costs no answer: it is left
// out where the platform has no room for it, and the answer takes its place. [Reactions] show on
// messages that wait for their turn that they were seen.
package outbox

import (
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
	// sendTimeout bounds one try to send or edit a message, fileTimeout one to send a file.
	sendTimeout = time.Minute
	fileTimeout = 10 * time.Minute
	// minRetry is the first pause between tries.
	minRetry = 500 * time.Millisecond
	// maxOwn bounds the tries of a text that the platform puts off although it is in order: with
	// pauses that grow to a minute about four minutes.
	maxOwn = 10
	// maxRepeatRetry bounds the pauses before a part is sent once more whose fate is unknown
	// each time (an hour on average): every try may put another copy in the chat.
	maxRepeatRetry = 80 * time.Minute
)

// SenderConfig is what a [Sender] is made of. All of it is needed.
type SenderConfig struct {
	// Platforms are all there are, by name.
	Platforms map[string]chats.Platform
	// Safe reports whether a job is certainly not another process's at this moment. Nil where this one
	// works alone.
	Safe func(j *queue.Run) bool
	// Redact masks secrets in what goes out.
	Redact func(text string) string
	// Files keeps the workspaces. Nil means that no other process has this disk's.
	Files queue.Files
	// Trace follows jobs; nil where no tracer does.
	Trace   queue.Tracer
	Measure queue.Counter
	Log     *slog.Logger
	Now     func() time.Time
	// Jobs keeps how far each delivery is.
	Jobs queue.Store
	// DeadLetters keeps what no platform took.
	DeadLetters DeadLetters
	// DataDir holds the folder of workspaces.
	DataDir string
	// MaxParts bounds the messages of one answer. What is longer is sent as a file besides,
	// where the platform takes files. A negative value is no bound.
	MaxParts int
	// MaxRetry bounds the pauses between tries.
	MaxRetry time.Duration
	// MaxSends bounds the sends that are made at the same time.
	MaxSends int
	Secrets  Secrets
	Queue    Queue
}

// DeadLetters keep what cannot be carried to its end.
type DeadLetters interface {
	// Add puts one on record.
	Add(ctx context.Context, d queue.DeadLetter) error
}

// Queue has the jobs whose answers are sent.
type Queue interface {
	// Context is what goes on beside the jobs runs under.
	Context() context.Context
	// TryGo runs that, unless the queue is closing; see [queue.Queue.TryGo].
	TryGo(f func()) bool
	// IsWaiting reports whether a message of a chat waits.
	IsWaiting(chat chats.Chat, key string) bool
	// Forward is where what is for a chat goes from now on: it may have moved, or move.
	Forward(chat chats.Chat) chats.Chat
}

// Secrets are what stands in no record.
type Secrets interface {
	// Lift makes what is sent of a part that has a [queue.SecretPlaceholder].
	Lift(ctx context.Context, j *queue.Run, part chats.Part) (chats.Part, error)
}

// Sender delivers answers. It has no goroutine of its own.
type Sender struct {
	cfg      SenderConfig
	breakers map[string]*breaker // one for each platform
	sends    chan struct{}       // bounds the sends
}

// NewSender returns a sender.
func NewSender(cfg SenderConfig) *Sender {
	if cfg.MaxParts < 0 {
		cfg.MaxParts = math.MaxInt / partBytes
	}
	s := &Sender{cfg: cfg, breakers: make(map[string]*breaker), sends: make(chan struct{}, cfg.MaxSends)}
	for name, p := range cfg.Platforms {
		s.breakers[name] = newBreaker(p, cfg.Log)
	}
	return s
}

// errUnsure says that another process may have taken the chat over.
var errUnsure = errors.New("outbox: this process has not proved for too long that it answers in this chat")

// Deliver sends the parts that have not been sent, in order. When it returns nil, each is
// sent, refused or set aside; an error means that the job has to go on later, and the job
// then says where. The end of patience ends the waits between the requests, the end of ctx
// the requests as well.
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
					j.Progressed() // on disk with the next part
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

// failed decides what follows an attempt that failed: it returns nil after a wait, or where there is
// nothing to try any more, and [errOverdue] where the platform has been out of order for a day.
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
	case p.File != nil && tries.hopeless():
		s.noticeInstead(j, p, err)
		return nil
	case errors.Is(failure, errUnlifted), p.File == nil && tries.own >= maxOwn:
		return failure.Err // it is not the platform's fault
	case failure.MovedTo != "":
		Of(j).MovedTo = failure.MovedTo
	}
	s.cfg.Log.Warn("part not sent yet", "job", j.Key(), "state", p.State, "retry_after", failure.RetryAfter, "err", err)
	return s.waitAgain(patience, j, wait)
}

// attempts counts the tries to send one part.
type attempts struct {
	unknown, other  int
	own             int // tries that failed without a word of the platform about itself
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

// pauseAfter returns how long to wait before what cannot come twice is tried again. In an outage
// that is no longer than the breaker waits.
func pauseAfter(pauses *retry.Pauses, failure *chats.SendError) time.Duration {
	wait := pauses.Next(0)
	if isOutage(failure) {
		wait = min(wait, maxOutagePause)
	}
	return max(wait, failure.RetryAfter)
}

// hopeless reports whether a file that was tried so often is not tried again.
func (a *attempts) hopeless() bool { return a.unknown >= maxFileUnknown || a.other >= maxFileTries }

// try sends a part once, when the platform is in order and there are not too many sends. The
// record says sending before the request, and pending again where the platform did not take
// it.
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
	if broken(err) {
		return err // it may have arrived, which the record says
	}
	if err != nil {
		return s.notSent(ctx, j, p, failureOf(err))
	}
	p.State, p.ID, p.Error = receipts.PartSent, id, ""
	return nil
}

// broken reports whether a call of a platform panicked. That says nothing about the platform: the
// job has lost a life.
func broken(err error) bool {
	_, is := errors.AsType[*rescue.PanicError](err)
	return is
}

// follow has a job go to where its chat is now.
func (s *Sender) follow(j *queue.Run) {
	if home := s.cfg.Queue.Forward(j.Message.Chat); home.ID != j.Message.Chat.ID {
		Of(j).MovedTo = home.ID
	}
}

// notSent keeps on disk what became of a part that the platform did not take.
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
		// Not arrived this time; a former try that may have is remembered by Repeat.
		what, p.State = queue.MeasuredPutOff, receipts.PartPending
		if failure.RetryAfter > 0 {
			what = queue.MeasuredDelayed
		}
	case chats.Unknown:
		p.State = receipts.PartUnknown
	}
	s.cfg.Measure(j.Message.Chat.Platform, what)
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

// recordSending has the record say that a part is being sent, unless it does. It refuses
// where another process may be about to send it.
func (s *Sender) recordSending(ctx context.Context, j *queue.Run, p *receipts.Part) error {
	if Of(j).ready {
		return s.unsure(j)
	}
	// The state on disk may be of a former life: what was being sent may have arrived.
	p.Repeat = p.Repeat || p.State == receipts.PartSending || p.State == receipts.PartUnknown
	before := p.State
	p.State = receipts.PartSending
	if err := s.cfg.Jobs.Save(ctx, j); err != nil {
		p.State = before
		return fmt.Errorf("record that a part is being sent: %w", err)
	}
	// The process may have been paused since it asked for that.
	if err := s.unsure(j); err != nil {
		p.State = before
		return err
	}
	return nil
}

// unsure returns an error where another process may be about to send for a job. One of a
// lease that is over, which was queued when the chat was being given away, is lost.
func (s *Sender) unsure(j *queue.Run) error {
	switch {
	case s.cfg.Safe == nil || s.cfg.Safe(j):
		return nil
	case s.cfg.Jobs.LeaseToken(j.Message.Chat) != j.LeaseToken:
		return queue.ErrLost
	}
	return errUnsure
}

// Edit has messages of a chat show other parts, each in place of its own. It tries until they do or
// cannot, and sets aside what the platform does not take for a day. Doing it again does no
// harm.
func (s *Sender) Edit(ctx context.Context, j *queue.Run, chat chats.Chat, ids []string, parts []receipts.Part) error {
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
		if err := s.unsure(j); err != nil { // another replica may have edited it during the wait
			k.report(probe, err)
			return err
		}
		call, cancel := context.WithTimeout(ctx, sendTimeout)
		err = rescue.Do(func() error { return editor.Edit(call, chats.Address{Chat: chat}, id, part) })
		cancel()
		if broken(err) {
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
