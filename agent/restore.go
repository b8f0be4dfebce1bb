package agent

import (
	"encoding/json"
	"iter"
	"reflect"
	"slices"

	"oneclaw/toolgroups"
)

// RestoreGroups returns the names of the groups that a conversation has loaded, in the order of their
// first successful load; parallel loads are in the order of their calls. It needs the whole history, not
// a window, or at least all messages with the label [LabelLoad], which give the same names.
//
// Only a successful result of load_tool_group counts. Results are matched with the calls of the last
// assistant message only, because some servers number the calls of every reply from zero.
func RestoreGroups(history iter.Seq[Message]) []string {
	var groups []string
	var loads []load
	for m := range history {
		switch m.Role {
		case RoleAssistant:
			groups = appendLoaded(groups, loads)
			loads = loads[:0]
			for i := range m.Calls {
				if m.Calls[i].EffectiveTool() == toolgroups.LoadToolGroup {
					loads = append(loads, load{call: m.Calls[i]})
				}
			}
		case RoleTool:
			if len(loads) > 0 && m.Tool == toolgroups.LoadToolGroup {
				setStatus(loads, m.CallID, m.Status)
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

// setStatus sets the status of the first load with this call id that has none.
func setStatus(loads []load, id string, status Status) {
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
		name, ok := toolgroups.ParseLoadArgument(json.RawMessage(l.call.EffectiveArguments()))
		if ok && name != "" && !slices.Contains(groups, name) {
			groups = append(groups, name)
		}
	}
	return groups
}

// WithoutTexts returns the parts of a message that are kept when its texts are erased, for
// [RestoreGroups]: calls of load_tool_group, with the arguments only if they name one of these groups, and
// whether the calls succeeded. It returns false if nothing is kept. It is idempotent.
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
		if m.Calls[i].EffectiveTool() != toolgroups.LoadToolGroup {
			continue
		}
		call := Call{ID: m.Calls[i].ID, Name: toolgroups.LoadToolGroup} // results are matched to calls in order
		if name, ok := toolgroups.ParseLoadArgument(json.RawMessage(m.Calls[i].EffectiveArguments())); ok && slices.Contains(groups, name) {
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

// Label returns the message's label in the log; empty if it has none.
func (m Message) Label() string {
	switch m.Role {
	case RoleSummary:
		return LabelSummary
	case RoleRefused:
		return LabelRefused
	case RoleAssistant:
		for i := range m.Calls {
			if m.Calls[i].EffectiveTool() == toolgroups.LoadToolGroup {
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

// EffectiveTool returns the name of the tool that the call runs, after unwrapping.
func (c Call) EffectiveTool() string {
	if c.Tool != "" {
		return c.Tool
	}
	return c.Name
}

// EffectiveArguments returns the arguments of the tool that [Call.EffectiveTool] names.
func (c Call) EffectiveArguments() string {
	if c.Tool != "" {
		return c.Input
	}
	return c.Arguments
}

// IsSame reports whether two calls run the same tool with the same arguments.
func (c Call) IsSame(other Call) bool {
	var mine, others any
	if c.EffectiveTool() != other.EffectiveTool() {
		return false
	}
	if json.Unmarshal([]byte(c.EffectiveArguments()), &mine) != nil || json.Unmarshal([]byte(other.EffectiveArguments()), &others) != nil {
		return c.EffectiveArguments() == other.EffectiveArguments()
	}
	return reflect.DeepEqual(mine, others)
}
