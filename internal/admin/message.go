package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/why"
	"oneclaw/internal/admin/frame"
	"oneclaw/storage"
)

// maxSteps bounds the rows of a waterfall.
const maxSteps = 60

// message explains what happened to one message.
func (p *page) message(ctx context.Context, r frame.Request) (frame.Page, error) {
	key := r.Query.Get("key")
	told, err := p.explain(ctx, key)
	if err != nil {
		return frame.Page{}, err
	}
	j := told.Receipt
	lines := make([]string, len(told.Lines))
	for i, line := range told.Lines {
		lines[i] = stripMarkdown(line)
	}
	log := conversationLog(j)
	facts := []frame.Fact{
		{Name: "Chat", Value: frame.Text(j.Message.Chat.String())},
		{Name: "From", Value: frame.Text(p.senderLabel(j))},
		{Name: "Outcome", Value: frame.Text(outcome(j))},
		{Name: "Accepted", Value: frame.Time(j.Accepted)},
	}
	if j.Incident != "" {
		failed, err := p.Program.Errors.byIncident(ctx)
		if err != nil {
			return frame.Page{}, err
		}
		why := reasonCell(j, failed)
		why.Mood = frame.Bad
		facts = append(facts, frame.Fact{Name: "Why", Value: why})
	}
	if log != "" {
		facts = append(facts, frame.Fact{Name: "Conversation", Value: frame.Cell{Text: log, Link: frame.ViewURL(conversationView, "log", log)}})
	}
	steps := &frame.Steps{Title: "From the platform to the answer", Rows: messageSteps(told, p.Now())}
	sections := []frame.Section{{Facts: facts, Items: lines}}
	if len(steps.Rows) > 0 {
		sections = append(sections, frame.Section{Title: "What took how long", Steps: steps, Table: steps.Table()})
	}
	said, err := p.textSection(ctx, r, textPage{view: messageView, name: "key", value: key, log: log}, func() []frame.Quote { return quotes(told.Turn) })
	if err != nil {
		return frame.Page{}, err
	}
	return frame.Page{Title: kindLabel(j.Key()) + " of " + j.Accepted.In(p.Zone()).Format(time.DateTime), Sections: append(sections, said)}, nil
}

func (p *page) explain(ctx context.Context, key string) (*why.Explanation, error) {
	told, err := p.Explain(ctx, key)
	if errors.Is(err, storage.ErrInvalid) {
		return nil, frame.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	if told == nil || !isExplainable(told.Receipt) {
		return nil, frame.ErrNotFound
	}
	return told, nil
}

// conversationLog returns the name of the log of a message's conversation, or "" if the message had no
// turn.
func conversationLog(j *receipts.Receipt) string {
	if receipts.IsTask(j.Message) {
		return conversation.Session{Chat: j.Origin(), Task: j.Message.ID}.Log()
	}
	if j.Turn.Generation == 0 {
		return ""
	}
	return conversation.Session{Chat: j.Message.Chat, Generation: j.Turn.Generation}.Log()
}

// messageSteps returns the steps from the platform to the last part of the answer, with their times.
func messageSteps(told *why.Explanation, now time.Time) []frame.Step {
	j := told.Receipt
	var all []frame.Step
	add := func(name, kind, note string, from, to time.Time) {
		if len(all) < maxSteps && !from.IsZero() && !to.Before(from) {
			all = append(all, frame.Step{Name: name, Kind: kind, Note: note, From: from, To: to})
		}
	}
	end := j.Closed
	if end.IsZero() {
		end = now
	}
	// Platforms use whole seconds; a much older time is not a delay.
	if sent := j.Message.Time; j.Accepted.Sub(sent) >= 2*time.Second && j.Accepted.Sub(sent) < time.Hour {
		add("On its way", "wait", "from the platform until it was on disk", sent, j.Accepted)
	}
	if len(told.Turn) == 0 {
		add("Until it was closed", "wait", "", j.Accepted, end)
		return all
	}
	begun := told.Turn[0].Time
	add("Waited", "wait", "for its turn", j.Accepted, begun)
	last := addTurnSteps(told.Turn, add)
	for _, a := range j.Turn.Approvals {
		if a.Decision != nil {
			about := a.Tool + ": " + a.Decision.Choice
			if a.Decision.By != "" {
				about += " by " + a.Decision.By
			}
			add("Approval", "wait", about, requestTime(told.Turn, a), a.Decision.At)
		}
	}
	switch {
	case j.Incident != "":
		add("Tried in vain", "model", "until it was given up", last, end)
	case len(j.Answer.Parts) > 0 || !j.Closed.IsZero():
		add("Delivery", "delivery", formatCount(len(j.Answer.Parts), "part", "parts"), last, end)
	default:
		add("Still at it", "model", "", last, end)
	}
	return all
}

// requestTime returns when the reply with the call that needed approval arrived.
func requestTime(turn []agent.Message, a receipts.Approval) time.Time {
	var at time.Time
	for _, m := range turn {
		for _, call := range m.Calls {
			if m.Time.Before(a.Decision.At) && (call.EffectiveTool() == a.Tool) {
				at = m.Time
			}
		}
	}
	return at
}

// addTurnSteps adds the calls of models and tools, and returns when the last one ended.
func addTurnSteps(turn []agent.Message, add func(name, kind, note string, from, to time.Time)) time.Time {
	last, reply := turn[0].Time, turn[0].Time
	started := make(map[string]time.Time)
	for _, m := range turn[1:] {
		switch m.Role {
		case agent.RoleAssistant:
			note := m.Model
			if u := m.Usage; u != nil {
				note = fmt.Sprintf("%s: %s tokens in (%s of them from the cache), %s out", m.Model, formatThousands(int64(u.Input)), formatThousands(int64(u.Cached)), formatThousands(int64(u.Output)))
			}
			add("Model", "model", note, last, m.Time)
			reply, last = m.Time, m.Time
			clear(started)
		case agent.RoleStarted:
			started[m.CallID] = m.Time
		case agent.RoleTool:
			from, known := started[m.CallID]
			if !known {
				from = reply
			}
			note := "done"
			if m.Status != agent.StatusOK {
				note = "failed: " + m.Code
			}
			add(m.Tool, "tool", note, from, m.Time)
			last = latest(last, m.Time)
		}
	}
	return last
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
