package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"oneclaw/toolgroups"
)

// LoadByHand loads a group for a user who asked for it outside of a turn. It returns the messages of a
// complete turn with a call of load_tool_group, so that the group is restored like any other, or the
// error that load_tool_group returns.
func LoadByHand(ctx context.Context, round *toolgroups.Round, scope toolgroups.Scope, group string) ([]Message, *toolgroups.Error) {
	call := Call{ID: "call_by_hand", Name: toolgroups.LoadToolGroup, Arguments: loadArguments(group)}
	tool, fault := round.Lookup(call.Name, scope)
	if fault != nil {
		return nil, fault
	}
	result, err := tool.Run(ctx, toolgroups.Call{ID: call.ID, Name: call.Name, Arguments: json.RawMessage(call.Arguments), Scope: scope})
	if errors.As(err, &fault) {
		return nil, fault
	}
	if err != nil {
		return nil, toolgroups.Errorf(toolgroups.CodeNotAvailable, "%v", err)
	}
	return []Message{
		{Role: RoleUser, Text: fmt.Sprintf("[I have loaded the tool group %s with a button.]", group)},
		{Role: RoleAssistant, Calls: []Call{call}},
		{Role: RoleTool, CallID: call.ID, Tool: call.Name, Status: StatusOK, Text: result.Text, Origin: result.Origin},
		{Role: RoleAssistant, Text: fmt.Sprintf("The tool group %s is loaded.", group), Final: true},
	}, nil
}
