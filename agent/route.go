package agent

import (
	"encoding/json"

	"oneclaw/toolgroups"
)

func (r *run) offer() *toolgroups.Round { return r.turn.Set.Route(r.turn.Router, r.facts()) }

// facts are what the router decides by.
func (r *run) facts() toolgroups.Facts {
	model := ProfileOf(r.model)
	return toolgroups.Facts{
		Scope: r.turn.Scope, ContextTokens: r.contextSize(), Recorded: routing(r.history), Past: past(r.history),
		First: first(r.history), Model: model.Name, MaxTools: model.MaxTools, Native: model.Native,
	}
}

// routing is what the newest reply or summary of a model has recorded. Messages that
// no model made (a turn that was stopped) record nothing and do not count.
func routing(history []Message) string {
	for i := len(history) - 1; i >= 0; i-- {
		if m := &history[i]; m.Routing != "" || m.Usage != nil {
			return m.Routing
		}
	}
	return ""
}

// first reports whether no model has said anything yet.
func first(history []Message) bool {
	for i := range history {
		if r := history[i].Role; r == RoleAssistant || r == RoleSummary {
			return false
		}
	}
	return true
}

// past lists the calls of the present turn that have results.
func past(history []Message) []toolgroups.PastCall {
	var calls []toolgroups.PastCall
	for i := turnStart(history) + 1; i < len(history); i++ {
		if history[i].Role != RoleAssistant {
			continue
		}
		x := pair(history, i)
		for n, call := range history[i].Calls {
			if at := x.results[n]; at >= 0 {
				calls = append(calls, toolgroups.PastCall{
					Tool: call.Name, Arguments: call.Arguments,
					Result: history[at].Text, OK: history[at].Status == StatusOK,
				})
			}
		}
	}
	return calls
}

// unwrap notes in calls which tools they run in truth, as far as that can be told.
func (r *run) unwrap(calls []Call, truncated bool) []Call {
	for i := range calls {
		if !truncated || json.Valid([]byte(calls[i].Arguments)) {
			calls[i], _ = r.unwrapOne(calls[i])
		}
	}
	return calls
}

func (r *run) unwrapOne(call Call) (Call, *toolgroups.Error) {
	tool, input, fault := r.round.Unwrap(call.Name, json.RawMessage(call.Arguments))
	if fault != nil {
		return call, fault
	}
	if tool != call.Name {
		call.Tool, call.Input = tool, string(input)
	}
	return call, nil
}

// lookup finds the tool of a call. What the call runs in truth is found anew, because
// records may be older than the tools of this round.
func (r *run) lookup(call Call) (Call, toolgroups.Tool, *toolgroups.Error) {
	call.Tool, call.Input = "", ""
	call, fault := r.unwrapOne(call)
	if fault != nil {
		return call, toolgroups.Tool{}, fault
	}
	find := r.round.Lookup
	if call.Tool != "" {
		find = r.round.Through
	}
	tool, fault := find(call.Runs(), r.turn.Scope)
	return call, tool, fault
}
