package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/internal/retry"
)

// sendTimeout bounds one try to send a part.
const sendTimeout = time.Minute

// maxRepeatRetry bounds the pauses before a part is sent once more whose fate is unknown
// each time: every try may put another copy in the chat.
const maxRepeatRetry = time.Hour

// render makes the parts of an answer, with its secrets masked.
func (b *Bridge) render(j *jobs.Job, answer string) []jobs.SentPart {
	return b.renderMasked(j, b.cfg.Redact(answer))
}

// renderMasked makes the parts of a text that is masked already. Where the platform's
// renderer fails, the text goes out as it is (B-04).
func (b *Bridge) renderMasked(j *jobs.Job, answer string) (parts []jobs.SentPart) {
	defer func() {
		if r := recover(); r != nil {
			b.log.Error("answer can not be rendered and goes out plain", "job", j.Key(), "panic", r)
			parts = []jobs.SentPart{{Part: chats.Part{Plain: answer}, State: jobs.PartPending}}
		}
	}()
	for _, p := range b.platforms[j.Message.Chat.Platform].Render(answer) {
		parts = append(parts, jobs.SentPart{Part: p, State: jobs.PartPending})
	}
	if parts == nil {
		parts = []jobs.SentPart{}
	}
	return parts
}

// deliver sends the parts that have not been sent, in order, and closes the job. An
// error means that it has to go on later; the job then says where.
func (b *Bridge) deliver(ctx context.Context, j *jobs.Job) error {
	to := j.Address()
	for i := 0; i < len(j.Parts); i++ {
		err := b.deliverPart(ctx, j, to, &j.Parts[i])
		if errors.Is(err, errOverdue) {
			if err = b.giveUp(j, i); err == nil {
				err = b.deliverPart(ctx, j, to, &j.Parts[i])
			}
		}
		if err != nil {
			return err
		}
		j.Held = time.Time{}
	}
	if j.Card != "" {
		if err := b.desk.Sent(ctx, j); err != nil {
			return err
		}
	}
	state := jobs.StateDone
	if j.Aside != "" || slices.ContainsFunc(j.Parts, func(p jobs.SentPart) bool { return p.State == jobs.PartFailed }) {
		state = jobs.StateFailed
	}
	b.measureAnswer(to.Chat.Platform, state)
	b.closeLater(j, state)
	return nil
}

// closeLater writes the receipt while the next message of the chat is already being
// answered: nobody waits for it. Until it is written, a crash lets the last part look
// cut off, and it is sent again with its mark.
func (b *Bridge) closeLater(j *jobs.Job, state jobs.State) {
	b.lanes.Go(func() {
		for wait := minRetry; b.settle(j, state) != nil; wait = min(2*wait, maxRetry) {
			if retry.Wait(b.lanes.Work(), wait) != nil {
				return
			}
		}
	})
}

// deliverPart tries until the part is sent or refused. While the platform is out of order
// it waits, and ends with [errOverdue] after a day. Waiting can be interrupted; a try that
// has begun is not.
func (b *Bridge) deliverPart(ctx context.Context, j *jobs.Job, to chats.Address, p *jobs.SentPart) error {
	var tries attempts
	for p.State != jobs.PartSent && p.State != jobs.PartFailed {
		probe, err := b.pass(ctx, j)
		if err != nil {
			return err
		}
		b.redirect(j, &to)
		err = b.tryInTurn(ctx, j, to, p)
		b.breakers[to.Chat.Platform].report(probe, err)
		if err == nil {
			continue
		}
		var failure *chats.SendError
		if !errors.As(err, &failure) {
			return err
		}
		wait := tries.note(failure)
		switch {
		case failure.Outcome == chats.Refused:
			b.log.Error("part refused by the platform", "job", j.Key(), "err", err)
			continue
		case p.File != nil && tries.hopeless():
			b.noticeInstead(j, p, err)
			continue
		case failure.MovedTo != "":
			j.MovedTo = failure.MovedTo
			to = j.Address()
		}
		b.log.Warn("part not sent yet", "job", j.Key(), "state", p.State, "retry_after", failure.RetryAfter, "err", err)
		if err := b.waitAgain(ctx, j, failure, wait); err != nil {
			return err
		}
	}
	return nil
}

// attempts counts the tries to send one part.
type attempts struct{ unknown, other int }

// note counts a try in vain and returns how long to wait before the next.
func (a *attempts) note(failure *chats.SendError) time.Duration {
	longest := maxRetry
	switch {
	case failure.Outcome == chats.Unknown:
		a.unknown++
		longest = maxRepeatRetry
	case !failure.Outage:
		a.other++
	}
	wait := minRetry
	for n := max(a.unknown, a.other); n > 1 && wait < longest; n-- {
		wait *= 2
	}
	return max(min(wait, longest), failure.RetryAfter)
}

// hopeless reports whether a file that was tried so often is not tried again.
func (a *attempts) hopeless() bool { return a.unknown >= maxFileUnknown || a.other >= maxFileTries }

// tryInTurn sends a part once, when there are not too many sends.
func (b *Bridge) tryInTurn(ctx context.Context, j *jobs.Job, to chats.Address, p *jobs.SentPart) error {
	select {
	case b.sends <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-b.sends }()
	return b.try(j, to, p)
}

// try sends a part once and keeps its state on disk: sending before the request, pending
// again where the platform did not take it.
func (b *Bridge) try(j *jobs.Job, to chats.Address, p *jobs.SentPart) error {
	timeout := sendTimeout
	if p.File != nil {
		timeout = fileTimeout
	}
	ctx, cancel := context.WithTimeout(b.lanes.Work(), timeout)
	defer cancel()
	if err := b.recordSending(ctx, j, p); err != nil {
		return err
	}
	id, err := b.send(ctx, j, to, p.Part)
	b.measureSend(to.Chat.Platform, p.Repeat, err)
	if err == nil {
		p.State, p.ID, p.Error = jobs.PartSent, id, ""
		return nil
	}
	p.Error = b.cfg.Redact(err.Error())
	var failure *chats.SendError
	if !errors.As(err, &failure) {
		failure = &chats.SendError{Outcome: chats.Unknown, Err: err}
	}
	switch failure.Outcome {
	case chats.Refused:
		p.State = jobs.PartFailed
		if p.File != nil {
			b.noticeInstead(j, p, failure)
		}
	case chats.Later:
		// Not arrived this time; a former try that may have is remembered by Repeat.
		p.State = jobs.PartPending
	case chats.Unknown:
		p.State = jobs.PartUnknown
	}
	// Of what the end of the bridge broke off, the record says sending already.
	if failure.Outcome != chats.Unknown || b.lanes.Work().Err() == nil {
		if saveErr := b.saveAlways(j); saveErr != nil {
			return fmt.Errorf("record that a part was not sent: %w", saveErr)
		}
	}
	return failure
}

// recordSending has the record say that a part is being sent, unless it does already.
func (b *Bridge) recordSending(ctx context.Context, j *jobs.Job, p *jobs.SentPart) error {
	if p.Ready {
		p.Ready = false
		return nil
	}
	// The state on disk may be of a former life: what was being sent may have arrived.
	p.Repeat = p.Repeat || p.State == jobs.PartSending || p.State == jobs.PartUnknown
	before := p.State
	p.State = jobs.PartSending
	if err := b.jobs.Save(ctx, j); err != nil {
		p.State = before
		return fmt.Errorf("record that a part is being sent: %w", err)
	}
	return nil
}

func (b *Bridge) saveAlways(j *jobs.Job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.lanes.Work()), jobs.StoreTimeout)
	defer cancel()
	return b.jobs.Save(ctx, j)
}
