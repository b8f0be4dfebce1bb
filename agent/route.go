package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/toolgroups"
)

func (r *run) offer() *toolgroups.Round { return r.turn.Set.Route(r.turn.Router, r.facts()) }

// facts returns what the router needs for its decision.
func (r *run) facts() toolgroups.Facts {
	model := ProfileOf(r.model)
	return toolgroups.Facts{
		Scope: r.turn.Scope, ContextTokens: r.contextSize(), Recorded: routing(r.history), Past: past(r.history),
		First: first(r.history), Model: model.Name, MaxTools: model.MaxTools, Native: model.Native, Idle: r.idle(), Kept: r.kept(),
		Shown: r.shown(r.history),
	}
}

// shown returns the texts about tools in a history that the model still sees.
func (r *run) shown(history []Message) func() []string {
	return sync.OnceValue(func() (texts []string) {
		messages, _ := Window(history, r.budget())
		for i := range messages {
			if m := &messages[i]; m.Role == RoleTool && m.Status == StatusOK && tellsOfTools(m.Tool) {
				texts = append(texts, m.Text)
			}
		}
		return texts
	})
}

// tellsOfTools reports whether the results of a tool tell the model how to call others.
func tellsOfTools(tool string) bool {
	return tool == toolgroups.LoadToolGroup || tool == toolgroups.ToolSearch || tool == toolgroups.ToolDescribe
}

// idle returns the time since the model's last reply.
func (r *run) idle() time.Duration {
	for i := len(r.history) - 1; i >= 0; i-- {
		if m := &r.history[i]; m.Role == RoleAssistant && (m.Routing != "" || m.Usage != nil) && !m.Time.IsZero() {
			return max(0, r.agent.cfg.Now().Sub(m.Time))
		}
	}
	return 0
}

// kept returns how long the provider was asked to keep the prompt of the last reply.
func (r *run) kept() time.Duration {
	if at := replied(r.history); at >= 0 {
		return r.history[at].CacheFor
	}
	return 0
}

// routing returns what the newest reply or summary of a model has recorded. Messages that no model made
// (of a stopped turn) do not count.
func routing(history []Message) string {
	for i := len(history) - 1; i >= 0; i-- {
		if m := &history[i]; m.Routing != "" || m.Usage != nil {
			return m.Routing
		}
	}
	return ""
}

// first reports whether the history has no reply yet.
func first(history []Message) bool {
	for i := range history {
		if r := history[i].Role; r == RoleAssistant || r == RoleSummary {
			return false
		}
	}
	return true
}

// past returns the calls of the present turn that have results.
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

// remind tells the model which tools of loaded groups it can reach, if the way to them has changed
// since its last request, or the text about them was erased.
func (r *run) remind() error {
	groups, outside, deferred := r.round.Reach()
	if len(outside)+len(deferred) == 0 || !r.round.Switched() && (r.turn.Incomplete || r.told(groups)) {
		return nil
	}
	return r.emit(Message{Role: RoleNote, Text: r.reach(), Routing: r.round.Record()})
}

// told reports whether the history shows that groups are loaded.
func (r *run) told(groups []string) bool {
	missing := slices.Clone(groups)
	tells := func(names ...string) {
		missing = slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(names, name) })
	}
	for i := 0; i < len(r.history) && len(missing) > 0; i++ {
		switch m := &r.history[i]; {
		case m.Erased:
		case m.Role == RoleNote, m.Role == RoleSummary:
			_, list, _ := strings.Cut(m.Reach+m.Text, reachBegin)
			list, _, _ = strings.Cut(list, ".")
			tells(strings.Split(list, ", ")...)
		case m.Label() == LabelLoad:
			for _, call := range m.Calls {
				name, _ := toolgroups.LoadArgument(json.RawMessage(call.Arg()))
				tells(name)
			}
		}
	}
	return len(missing) == 0
}

// reachBegin begins the list of loaded groups.
const reachBegin = "Loaded tool groups: "

// maxReach bounds the list of tools that the model runs through others, in characters.
const maxReach = 12_000

// reach returns the loaded groups and those of their tools that the model is not shown; empty if none
// are loaded.
func (r *run) reach() string {
	groups, outside, deferred := r.round.Reach()
	var text []string
	if len(groups) > 0 {
		text = append(text, reachBegin+strings.Join(groups, ", ")+". They stay loaded.")
	}
	if len(outside) > 0 {
		text = append(text, fmt.Sprintf("Not listed as tools of their own, but ready: %s(names) shows their parameters, %s(name, arguments) runs them: %s.",
			toolgroups.ToolDescribe, toolgroups.ToolCall, r.names(outside, toolgroups.ToolDescribe+" with the name of a group lists its tools")))
	}
	if len(deferred) > 0 {
		text = append(text, "Ready, and found by a search for their names: "+r.names(deferred, "search for what they do")+".")
	}
	if len(text) == 0 {
		return ""
	}
	return "[" + strings.Join(text, " ") + "]"
}

// names lists tools; if that is too long for the model's context, as many as fit and how to find the
// others.
func (r *run) names(tools []string, others string) string {
	limit := maxReach
	if size := r.contextSize(); size > 0 {
		limit = min(limit, size/2)
	}
	names := strings.Join(tools, ", ")
	if len(names) <= limit {
		return names
	}
	return names[:max(0, strings.LastIndex(names[:limit], ","))] + " and more: " + others
}

// unwrap records in calls which tools they really run, as far as that can be told.
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
	if tool != call.Name && tool != "" {
		// A refused call also names the tool that was meant: statistics, views and approvals use that
		// name.
		call.Tool, call.Input = tool, string(input)
		if fault != nil {
			call.Input = cmp.Or(call.Input, call.Arguments)
		}
	}
	return call, fault
}

// lookup finds the tool of a call. It unwraps the call again, because records may be older than the
// tools of this round.
func (r *run) lookup(call Call) (Call, toolgroups.Tool, *toolgroups.Error) {
	call.Tool, call.Input = "", ""
	call, fault := r.unwrapOne(call)
	if fault != nil {
		return call, toolgroups.Tool{}, fault
	}
	find := r.round.Lookup
	if call.Tool != "" {
		find = r.round.LookupUnwrapped
	}
	tool, fault := find(call.Runs(), r.turn.Scope)
	return call, tool, fault
}
