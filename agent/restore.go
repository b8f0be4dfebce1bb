package agent

import (
	"encoding/json"
	"iter"
	"slices"

	"oneclaw/toolgroups"
)

// RestoreGroups returns the names of the groups that a conversation has loaded, in the order of their
// first successful load; parallel loads count in the order of their calls. It needs the whole history,
// not a window, or at least all messages with the label [LabelLoad]: both give the same names.
//
// Only a successful result of load_tool_group counts. Call ids are forgotten at each assistant message,
// because some servers number the calls of every reply from zero.
func RestoreGroups(history iter.Seq[Message]) []string {
	var groups []string
	var loads []load
	for m := range history {
		switch m.Role {
		case RoleAssistant:
			groups = appendLoaded(groups, loads)
			loads = loads[:0]
			for i := range m.Calls {
				if m.Calls[i].Runs() == toolgroups.LoadToolGroup {
					loads = append(loads, load{call: m.Calls[i]})
				}
			}
		case RoleTool:
			if len(loads) > 0 && m.Tool == toolgroups.LoadToolGroup {
				settle(loads, m.CallID, m.Status)
			}
		}
	}
	return appendLoaded(groups, loads)
}

// load is a call of load_tool_group and its result.
type load struct {
	call   Call
	status Status
}

// settle sets the result of the first call with this id that has none.
func settle(loads []load, id string, status Status) {
	for i := range loads {
		if loads[i].call.ID == id && loads[i].status == "" {
			loads[i].status = status
			return
		}
	}
}

func appendLoaded(groups []string, loads []load) []string {
	for _, l := range loads {
		if l.status != StatusOK {
			continue
		}
		name, ok := toolgroups.LoadArgument(json.RawMessage(l.call.Arg()))
		if ok && name != "" && !slices.Contains(groups, name) {
			groups = append(groups, name)
		}
	}
	return groups
}

// WithoutTexts returns what stays of a message whose texts are erased: the calls that loaded one of
// these groups, and whether calls of load_tool_group succeeded, as [RestoreGroups] reads them. It
// returns false if nothing stays. It is idempotent.
func (m Message) WithoutTexts(groups []string) (Message, bool) {
	if m.Label() != LabelLoad {
		return Message{}, false
	}
	left := Message{Role: m.Role, Erased: true}
	if m.Role == RoleTool {
		left.CallID, left.Tool, left.Status = m.CallID, m.Tool, m.Status
		return left, true
	}
	for i := range m.Calls {
		if m.Calls[i].Runs() != toolgroups.LoadToolGroup {
			continue
		}
		call := Call{ID: m.Calls[i].ID, Name: toolgroups.LoadToolGroup} // results are matched to calls in order
		if name, ok := toolgroups.LoadArgument(json.RawMessage(m.Calls[i].Arg())); ok && slices.Contains(groups, name) {
			call.Arguments = loadArguments(name)
		}
		left.Calls = append(left.Calls, call)
	}
	return left, true
}

// loadArguments returns the arguments with which load_tool_group loads a group.
func loadArguments(group string) string {
	data, _ := json.Marshal(map[string]string{"group_name": group}) // never fails
	return string(data)
}

// Label returns the message's label in the log; empty for none.
func (m Message) Label() string {
	switch m.Role {
	case RoleSummary:
		return LabelSummary
	case RoleRefused:
		return LabelRefused
	case RoleAssistant:
		for i := range m.Calls {
			if m.Calls[i].Runs() == toolgroups.LoadToolGroup {
				return LabelLoad
			}
		}
	case RoleTool:
		if m.Tool == toolgroups.LoadToolGroup {
			return LabelLoad
		}
	}
	return ""
}

// Runs returns the name of the tool that the call really runs.
func (c Call) Runs() string {
	if c.Tool != "" {
		return c.Tool
	}
	return c.Name
}

// Arg returns the arguments of the tool that [Call.Runs] names.
func (c Call) Arg() string {
	if c.Tool != "" {
		return c.Input
	}
	return c.Arguments
}
