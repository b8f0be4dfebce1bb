package toolgroups

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// LoadToolGroup is the name of the core tool that loads a group.
const LoadToolGroup = "load_tool_group"

// Codes of errors that load_tool_group makes.
const (
	CodeMissingParameter = "missing_parameter"
	CodeUnknownGroup     = "not_found"
	CodeEmptyGroup       = "empty_group"
)

// maxEcho is how much of a name that the model made up is repeated to it.
const maxEcho = 64

// loadTool is load_tool_group, for which a [Set] has the function. It reads its arguments
// itself, because the answer to a missing one is fixed (S3).
func loadTool() Tool {
	return Tool{
		Name: LoadToolGroup,
		Description: "Load a tool group. You must do this before you can call any of its tools; " +
			"they then stay available for the rest of this conversation.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"group_name":{"type":"string",` +
			`"description":"Name from the list of tool groups"}},"required":["group_name"]}`),
		Doing:        "getting tools ready",
		Timeout:      5 * time.Second,
		Effect:       ReadOnly,
		OwnArguments: true,
		Run: func(context.Context, Call) (Result, error) {
			return Result{}, Errorf(CodeNotAvailable, "Tool '%s' is not available for this agent", LoadToolGroup)
		},
	}
}

// LoadArgument returns the group that a call of load_tool_group asks for, without
// space around it; false where there is none. It serves the load itself and the
// restoring of loads from a history, so that both read a call alike.
func LoadArgument(arguments json.RawMessage) (string, bool) {
	fixed, err := RepairArguments(arguments)
	if err != nil {
		return "", false
	}
	var args map[string]any
	if err := json.Unmarshal(fixed, &args); err != nil {
		return "", false
	}
	name, ok := args["group_name"].(string)
	return strings.TrimSpace(name), ok
}

// load is what load_tool_group does in this conversation. describe is as in [Route].
func (s *Set) load(call Call, ticket int, describe func([]string, []Tool) string) (Result, error) {
	name, ok := LoadArgument(call.Arguments)
	if !ok {
		return Result{}, Errorf(CodeMissingParameter, "Required parameter 'group_name' is missing.")
	}
	reg := s.current()
	i, ok := reg.byGroup[name]
	if !ok {
		return Result{}, Errorf(CodeUnknownGroup, "Tool group '%s' not found. Available groups: %s",
			oneLine(name, maxEcho), strings.Join(reg.GroupNames(), ", "))
	}
	group := reg.groups[i]
	if call.Role < group.Role {
		return Result{}, denied("load the tool group '"+name+"'", group.Role)
	}
	tools := reg.groupTools(name)
	if len(tools) == 0 {
		return Result{}, Errorf(CodeEmptyGroup, "Tool group '%s' has no available tools.", name)
	}
	s.add(name, ticket)
	text := loadedText(group.DisplayName, tools)
	if describe != nil {
		text += describe(s.Loaded(), tools)
	}
	return Result{Text: text}, nil
}

// loadedText is S1.
func loadedText(display string, tools []Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Loaded %d tools from group '%s':", len(tools), display)
	for _, t := range tools {
		b.WriteString("\n- " + t.Name + ": " + oneLine(t.Description, MaxText))
	}
	return b.String()
}
