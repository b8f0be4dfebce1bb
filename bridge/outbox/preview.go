package outbox

import (
	"context"
	"errors"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
)

// ReplacePreview makes the first part of an answer replace its preview. The stop button stays until the
// last part is sent. If it is unknown whether the preview arrived, the first part is marked as a
// possible duplicate.
func (s *Sender) ReplacePreview(j *queue.Run, parts []receipts.Part) []receipts.Part {
	d := DeliveryOf(j)
	p := d.Preview
	if p == nil || len(parts) == 0 {
		return parts
	}
	first := &parts[0]
	switch {
	case p.ID == "":
		first.Repeat = true
	case first.File != nil || p.ChatID != Address(j).Chat.ID:
	case len(parts) > 1 && d.CardToken == "":
		first.ReplacesID = p.ID
		last := *first
		last.RemovesButtons, first.Buttons = true, p.stopButtons()
		return append(parts, last)
	default:
		first.ReplacesID = p.ID
	}
	return parts
}

// finishPreview turns the preview of a job into a part of its answer. If the platform refuses the content, the
// next attempt is another form of the part; see replaceRefused. If the preview is gone, the part
// is sent like any other, as is a notice about a dead letter after one edit that failed: perhaps edits are
// all that fails. It returns the same errors as trySend.
func (s *Sender) finishPreview(ctx, patience context.Context, j *queue.Run, p *receipts.Part) error {
	s.updateDestination(j)
	to := Address(j)
	previewer, ok := s.cfg.Platforms[to.Chat.Platform].(chats.Previewer)
	if shown := DeliveryOf(j).Preview; !ok || shown == nil || shown.ChatID != to.Chat.ID {
		sendAsNew(j, p)
		return nil
	}
	k := s.breakers[to.Chat.Platform]
	probe, err := s.awaitPlatform(patience, j, k)
	if err != nil {
		return err
	}
	if err = s.checkOwnership(j); err == nil {
		call, cancel := context.WithTimeout(s.withOwnership(ctx, j), sendTimeout)
		defer cancel()
		err = request(func() error { return previewer.Finish(call, to, p.ReplacesID, p.Part) })
	}
	k.report(probe, err)
	failure, is := errors.AsType[*chats.SendError](err)
	switch {
	case err == nil:
		p.State, p.ID, p.Error = receipts.PartSent, p.ReplacesID, ""
	case is && failure.Outcome == chats.Refused && failure.ContentRefused:
		return s.recordFailure(ctx, j, p, failure) // the preview must not stay as if it were the answer
	case is && (failure.Outcome == chats.Refused || isOutage(failure) && DeliveryOf(j).DeadLetter != ""):
		s.cfg.Log.Warn("a preview cannot be replaced, its part is sent as a new message", "job", j.Key(), "err", err)
		sendAsNew(j, p)
		p.Repeat = p.Repeat || failure.MessageRemains || failure.Outcome == chats.Unknown
		return nil
	case is:
		p.Error = s.cfg.Redact(failure.Error())
	}
	return err
}

// sendAsNew changes a part so that it is sent as a new message, because the message to replace is gone.
// A part that would only have removed the button is dropped.
func sendAsNew(j *queue.Run, p *receipts.Part) {
	d := DeliveryOf(j)
	for i := range d.Parts {
		if q := &d.Parts[i]; q.RemovesButtons && q.ReplacesID == p.ReplacesID {
			q.State, p.Buttons = receipts.PartSent, nil
		}
	}
	if p.ReplacesID = ""; !p.RemovesButtons {
		d.Preview = nil
	}
}
