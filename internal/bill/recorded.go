package bill

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/provider"
	"oneclaw/toolgroups"
)

// ErrEmpty is returned for a conversation without answered messages.
var ErrEmpty = errors.New("no answered messages since it began or was cleared")

// FromLog makes a conversation from the log of a chat: users' messages, tool results, and
// answers. It leaves out loads and searches, since each routing has its own, and calls without a
// result. Questions without any reply are joined to the next. Summarised parts are included in full.
func FromLog(name string, log iter.Seq2[agent.Message, error]) (Conversation, error) {
	c := Conversation{Name: name, Title: "as it was recorded", Recorded: true}
	var r recorder
	for m, err := range log {
		if err != nil {
			return c, fmt.Errorf("bill: read the conversation: %w", err)
		}
		switch {
		case m.Role == agent.RoleSummary && m.Usage != nil:
			c.Summaries = append(c.Summaries, Summary{m.Model, *m.Usage})
		case m.Role == agent.RoleUser:
			if m.BeginsTurn() {
				if r.endStep(); r.turn.User != "" && len(r.turn.Steps) > 0 { // it has no answer
					c.Turns = append(c.Turns, r.turn)
					r.turn = Turn{}
				}
			}
			if before := r.last; !before.IsZero() && r.turn.User == "" {
				r.turn.After = max(0, m.Time.Sub(before))
			}
			r.turn.User = strings.TrimPrefix(r.turn.User+"\n"+provider.UserText(&m, false), "\n")
		case m.Role == agent.RoleTool:
			r.addResult(m)
		case m.Role == agent.RoleAssistant && !m.Final && len(m.Calls) > 0:
			r.beginStep(m)
		case m.Role == agent.RoleAssistant:
			r.endStep()
			r.turn.Answer, r.turn.Model, r.last = m.Text, m.Model, m.Time
			if r.turn.User != "" && r.turn.Answer != "" {
				c.Turns = append(c.Turns, r.turn)
			}
			r.turn = Turn{}
		}
	}
	if !slices.ContainsFunc(c.Turns, func(t Turn) bool { return t.Answer != "" }) {
		return c, fmt.Errorf("%s has %w", name, ErrEmpty)
	}
	return c, nil
}

// RecordedCalls returns the calls in a log that have a result, except those that find tools.
func RecordedCalls(log []agent.Message) []Call {
	var r recorder
	for _, m := range log {
		switch m.Role {
		case agent.RoleTool:
			r.addResult(m)
		case agent.RoleAssistant:
			r.beginStep(m)
		}
	}
	r.endStep()
	return r.turn.appendCalls(nil)
}

// FindsTools reports whether a tool only finds other tools, which each routing does in its own way.
func FindsTools(name string) bool {
	return name == toolgroups.LoadToolGroup || toolgroups.Reserved(name)
}

type recorder struct {
	turn Turn
	// last is the time of the last reply.
	last time.Time
	// ids are the ids of the calls in the last step, empty for those with a result.
	ids []string
}

// beginStep begins a step with the calls of a reply, except those that find tools.
func (r *recorder) beginStep(m agent.Message) {
	r.endStep()
	s := Step{Text: m.Text}
	r.turn.Model, r.last = m.Model, m.Time
	for _, call := range m.Calls {
		name := call.EffectiveTool()
		if FindsTools(name) {
			continue
		}
		c := Call{Tool: name}
		if json.Unmarshal([]byte(call.EffectiveArguments()), &c.Arguments) != nil {
			c.Arguments = nil
		}
		s.Calls = append(s.Calls, c)
		r.ids = append(r.ids, call.ID)
	}
	r.turn.Steps = append(r.turn.Steps, s)
}

func (r *recorder) addResult(m agent.Message) {
	i := slices.Index(r.ids, m.CallID)
	if i < 0 || m.CallID == "" {
		return
	}
	r.ids[i] = ""
	c := &r.turn.Steps[len(r.turn.Steps)-1].Calls[i]
	c.Result, c.Code = m.Text, m.Code
}

// endStep ends the last step. It drops calls without a result, and a step without calls.
func (r *recorder) endStep() {
	n := len(r.turn.Steps)
	if n == 0 {
		return
	}
	last := &r.turn.Steps[n-1]
	var calls []Call
	for i, id := range r.ids {
		if id == "" {
			calls = append(calls, last.Calls[i])
		}
	}
	if last.Calls = calls; len(calls) == 0 {
		r.turn.Steps = r.turn.Steps[:n-1]
	}
	r.ids = nil
}

// dropUnknownCalls leaves out the calls of unknown tools, and returns their number.
func (b *Bill) dropUnknownCalls(c Conversation) (Conversation, int) {
	if !c.Recorded {
		return c, 0
	}
	known := func(name string) bool {
		if c.WithServers && slices.ContainsFunc(b.servers, func(g toolgroups.Group) bool { return strings.HasPrefix(name, strings.TrimPrefix(g.Name, "mcp_")+"_") }) {
			return true
		}
		_, ok := b.cfg.Registry.Tool(name)
		return ok && !b.cfg.Registry.Disabled(name)
	}
	left := 0
	c.Turns = slices.Clone(c.Turns)
	for t := range c.Turns {
		var steps []Step
		for _, s := range c.Turns[t].Steps {
			calls := slices.DeleteFunc(slices.Clone(s.Calls), func(call Call) bool { return !known(call.Tool) })
			left += len(s.Calls) - len(calls)
			if s.Calls = calls; len(calls) > 0 {
				steps = append(steps, s)
			}
		}
		c.Turns[t].Steps = steps
	}
	c.Turns = slices.DeleteFunc(c.Turns, func(t Turn) bool { return t.Answer == "" && len(t.Steps) == 0 })
	return c, left
}
