package outbox

import (
	"cmp"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
)

// replaceRefused changes a part that the platform has refused to the form of the next attempt, which it marks
// as pending. A file becomes a line that says why. A text that was refused for its content becomes plain text
// without buttons, and then a line with an incident. A part that no other form can help fails.
func (s *Sender) replaceRefused(j *queue.Run, p *receipts.Part, failure *chats.SendError) {
	bare := chats.Part{Plain: cmp.Or(p.Plain, p.Text), Repeat: p.Repeat}
	isBare := p.Bare || p.Text == "" && len(p.Buttons) == 0 && p.Layout == nil && !p.FeedbackButtons
	switch {
	case p.File != nil:
		s.replaceByNotice(j, p, failure)
		return
	case !failure.ContentRefused || p.Incident != "":
		s.cfg.Log.Error("part refused by the platform", "job", j.Key(), "err", failure)
		p.State = receipts.PartFailed
		return
	case !isBare:
		s.cfg.Log.Warn("part refused by the platform: sending plain text without buttons", "job", j.Key(), "err", failure)
		p.Part, p.Bare = bare, true
	case p.RemovesButtons:
		p.State = receipts.PartSent // a button that stays is no loss for users
		return
	default:
		p.Incident = queue.NewIncident()
		s.cfg.Log.Error("part refused by the platform, even as plain text", "incident", p.Incident, "chat", j.Message.Chat.String(), "job", j.Key(), "err", failure)
		p.Part = newNotice("I could not show this part of my answer: the chat service refused it, even as plain text.\n\nIncident %s", p.Incident).Part
	}
	p.State = receipts.PartPending
	if p.ReplacesID == "" {
		return
	}
	for i := range DeliveryOf(j).Parts {
		if q := &DeliveryOf(j).Parts[i]; q != p && q.ReplacesID == p.ReplacesID { // it repeats p without the stop button
			q.Part, q.Bare, q.Incident = p.Part, p.Bare, p.Incident
		}
	}
}
