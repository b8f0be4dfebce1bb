package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"oneclaw/toolgroups"
)

func (r *run) routeTools() *toolgroups.Round { return r.turn.Set.Route(r.turn.Router, r.routerFacts()) }

// routerFacts returns the input for the router's decision.
func (r *run) routerFacts() toolgroups.RouteInput {
	return toolgroups.RouteInput{
		Scope: r.turn.Scope, ContextTokens: r.contextSize(), MaxTools: ProfileOf(r.model).MaxTools,
		FirstRequest: isFirstRequest(r.history), PastCalls: pastCalls(r.history), VisibleResults: r.shownToolTexts(r.history),
	}
}

// shownToolTexts returns a function that lists the texts about tools that the model is still sent.
func (r *run) shownToolTexts(history []Message) func() []string {
	return sync.OnceValue(func() (texts []string) {
		messages, _ := Window(history, r.budget())
		for i := range messages {
			if m := &messages[i]; m.Role == RoleTool && m.Status == StatusOK && isAboutTools(m.Tool) {
				texts = append(texts, m.Text)
			}
		}
		return texts
	})
}

// isAboutTools reports whether a tool's results describe how to call other tools.
func isAboutTools(tool string) bool {
	return tool == toolgroups.LoadToolGroup || tool == toolgroups.ToolSearch || tool == toolgroups.ToolDescribe
}

// recordedRouting returns the routing in the newest reply or summary by a model, or in a newer note. The
// final message of a stopped turn is not by a model and does not count.
func recordedRouting(history []Message) string {
	for i := len(history) - 1; i >= 0; i-- {
		if m := &history[i]; m.Routing != "" || m.Usage != nil {
			return m.Routing
		}
	}
	return ""
}

// isFirstRequest reports whether the history has neither a reply nor a summary.
func isFirstRequest(history []Message) bool {
	for i := range history {
		if r := history[i].Role; r == RoleAssistant || r == RoleSummary {
			return false
		}
	}
	return true
}

// pastCalls returns the calls with results of the turn at the end of a history, which has no answer yet.
func pastCalls(history []Message) []toolgroups.PastCall {
	var calls []toolgroups.PastCall
	for i := turnStart(history) + 1; i < len(history); i++ {
		if history[i].Role != RoleAssistant {
			continue
		}
		x := pairCalls(history, i)
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

// addToolNote adds a note with the tools of loaded groups, if the way to call them has changed since the
// last request, or if the text about them was erased.
func (r *run) addToolNote() error {
	groups, outside := r.round.LoadedGroups()
	before := recordedRouting(r.history)
	changed := before != "" && before != r.round.Mode()
	if len(outside) == 0 || !changed && (r.turn.Incomplete || r.historyShows(groups)) {
		return nil
	}
	return r.emit(Message{Role: RoleNote, Text: r.loadedGroupsNote(), Routing: r.round.Mode()})
}

// historyShows reports whether the history shows the model that these groups are loaded.
func (r *run) historyShows(groups []string) bool {
	missing := slices.Clone(groups)
	tells := func(names ...string) {
		missing = slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(names, name) })
	}
	for i := 0; i < len(r.history) && len(missing) > 0; i++ {
		switch m := &r.history[i]; {
		case m.Erased:
		case m.Role == RoleNote, m.Role == RoleSummary:
			_, list, _ := strings.Cut(m.LoadedGroups+m.Text, loadedGroupsPrefix)
			list, _, _ = strings.Cut(list, ".")
			tells(strings.Split(list, ", ")...)
		case m.Label() == LabelLoad:
			for _, call := range m.Calls {
				name, _ := toolgroups.ParseLoadArgument(json.RawMessage(call.EffectiveArguments()))
				tells(name)
			}
		}
	}
	return len(missing) == 0
}

// loadedGroupsPrefix begins the list of loaded groups in a note.
const loadedGroupsPrefix = "Loaded tool groups: "

// maxToolList bounds the list of tools that the model calls through other tools, in bytes.
const maxToolList = 12_000

// loadedGroupsNote lists the loaded groups and those of their tools that are not in the tools array. It
// returns "" if none are loaded.
func (r *run) loadedGroupsNote() string {
	groups, outside := r.round.LoadedGroups()
	var text []string
	if len(groups) > 0 {
		text = append(text, loadedGroupsPrefix+strings.Join(groups, ", ")+". They stay loaded.")
	}
	if len(outside) > 0 {
		text = append(text, fmt.Sprintf("Not listed as tools of their own, but ready: %s(names) shows their parameters, %s(name, arguments) runs them: %s.",
			toolgroups.ToolDescribe, toolgroups.ToolCall, r.listTools(outside)))
	}
	if len(text) == 0 {
		return ""
	}
	return "[" + strings.Join(text, " ") + "]"
}

// listTools lists tools. If the list is too long for the model's context, it ends with how to find the rest.
func (r *run) listTools(tools []string) string {
	limit := maxToolList
	if size := r.contextSize(); size > 0 {
		limit = min(limit, size/2)
	}
	names := strings.Join(tools, ", ")
	if len(names) <= limit {
		return names
	}
	return names[:max(0, strings.LastIndex(names[:limit], ","))] + " and more: " + toolgroups.ToolDescribe + " with the name of a group lists its tools"
}

// unwrap sets Tool and Input of calls that run another tool, if that tool can be determined.
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
		// Set the tool of a refused call too, because statistics, admin pages and approvals use its
		// name.
		call.Tool, call.Input = tool, string(input)
		if fault != nil {
			call.Input = cmp.Or(call.Input, call.Arguments)
		}
	}
	return call, fault
}

// lookup finds the tool of a call. It unwraps the call again, because the call may have been recorded
// before the tools changed.
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
	tool, fault := find(call.EffectiveTool(), r.turn.Scope)
	return call, tool, fault
}
