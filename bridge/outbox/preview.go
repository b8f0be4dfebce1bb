package outbox

import (
	"context"
	"errors"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/rescue"
)

// Adopt makes the first message of an answer replace its preview. While more of the answer is to come,
// the button stays. If it is unknown whether a preview arrived, the answer may follow a copy of its
// beginning, and says so.
func (s *Sender) Adopt(j *queue.Run, parts []receipts.Part) []receipts.Part {
	d := Of(j)
	p := d.Preview
	if p == nil || len(parts) == 0 {
		return parts
	}
	first := &parts[0]
	switch {
	case p.ID == "":
		first.Repeat = true
	case first.File != nil || p.ChatID != Address(j).Chat.ID:
	case len(parts) > 1 && d.Card == "":
		first.Edit = p.ID
		last := *first
		last.Last, first.Buttons = true, p.StopButtons()
		return append(parts, last)
	default:
		first.Edit = p.ID
	}
	return parts
}

// finish turns the preview of a job into a part of its answer. If the preview is gone, the part is sent
// like any other. Errors are as of try.
func (s *Sender) finish(ctx, patience context.Context, j *queue.Run, p *receipts.Part) error {
	s.follow(j)
	to := Address(j)
	previewer, ok := s.cfg.Platforms[to.Chat.Platform].(chats.Previewer)
	if shown := Of(j).Preview; !ok || shown == nil || shown.ChatID != to.Chat.ID {
		sendAsNew(j, p)
		return nil
	}
	k := s.breakers[to.Chat.Platform]
	probe, err := s.waitInOrder(patience, j, k)
	if err != nil {
		return err
	}
	if err = s.checkOwnership(j); err == nil {
		call, cancel := context.WithTimeout(ctx, sendTimeout)
		defer cancel()
		err = rescue.Do(func() error { return previewer.Finish(call, to, p.Edit, p.Part) })
	}
	k.report(probe, err)
	failure, is := errors.AsType[*chats.SendError](err)
	switch {
	case err == nil:
		p.State, p.ID, p.Error = receipts.PartSent, p.Edit, ""
	case is && failure.Outcome == chats.Refused:
		s.cfg.Log.Warn("a preview is gone, and what it should show is sent", "job", j.Key(), "err", err)
		sendAsNew(j, p)
		p.Repeat = p.Repeat || failure.Stands
		return nil
	case is:
		p.Error = s.cfg.Redact(failure.Error())
	}
	return err
}

// sendAsNew makes a part be sent as a new message, because the message it should replace is gone; a part
// that would only have removed the button is dropped.
func sendAsNew(j *queue.Run, p *receipts.Part) {
	d := Of(j)
	for i := range d.Parts {
		if q := &d.Parts[i]; q.Last && q.Edit == p.Edit {
			q.State, p.Buttons = receipts.PartSent, nil
		}
	}
	if p.Edit = ""; !p.Last {
		d.Preview = nil
	}
}
