package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// The tool that the model should call, the question, and the answer.
const (
	addName   = "add"
	addSchema = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}`
	question  = "Use the tool add to add 1234 and 5678, and then tell me the sum."
	sum       = "6912"
)

// modelResults returns the model emulator's results by step.
func modelResults() map[string]string {
	return map[string]string{
		"round 1": "calls add(1234, 5678)",
		"round 2": "says 6912",
		"usage":   "tells the tokens",
	}
}

// OwnModel names the program's own model in rows.
const OwnModel = "model"

// TryModel tests a model with one tool call, in two rounds, and yields the results. where names the model
// in them.
func TryModel(ctx context.Context, where string, m agent.Model) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		row := func(step, did string, err error) bool {
			return yield(Row{where, step, did, modelResults()[step], err})
		}
		request := agent.Request{
			System: "You do sums with the tool that you have.", Messages: []agent.Message{{Role: agent.RoleUser, Text: question}},
			Tools: []toolgroups.Tool{{Name: addName, Description: "Adds two whole numbers.", Parameters: json.RawMessage(addSchema)}},
		}
		reply, err := m.Complete(ctx, request, nil)
		if !row("round 1", describeCalls(reply), err) {
			return
		}
		if err != nil || len(reply.Calls) == 0 {
			row("round 2", "", errors.New("without a call there is no second round"))
			return
		}
		request.Messages = append(request.Messages, agent.Message{Role: agent.RoleAssistant, Text: reply.Text, Reasoning: reply.Reasoning, Calls: reply.Calls})
		for _, c := range reply.Calls {
			request.Messages = append(request.Messages, agent.Message{Role: agent.RoleTool, CallID: c.ID, Tool: c.Name, Status: agent.StatusOK, Text: sum})
		}
		last, err := m.Complete(ctx, request, nil)
		did := "says " + quote(last.Text)
		if strings.Contains(strings.NewReplacer(",", "", ".", "", " ", "", "\u202f", "").Replace(last.Text), sum) {
			did = "says " + sum
		}
		if !row("round 2", did, err) || err != nil {
			return
		}
		did = "tells the tokens"
		if reply.Usage.Input == 0 || last.Usage.Output == 0 {
			did = "does not tell the tokens"
		}
		row("usage", did, nil)
	}
}

// describeCalls describes the tool calls in a reply.
func describeCalls(reply agent.Reply) string {
	if len(reply.Calls) == 0 {
		return "calls nothing, says " + quote(reply.Text)
	}
	var all []string
	for _, c := range reply.Calls {
		var numbers struct{ A, B json.Number }
		did := c.Name + quote(c.Arguments)
		if json.Unmarshal([]byte(c.Arguments), &numbers) == nil {
			did = fmt.Sprintf("%s(%s, %s)", c.Name, numbers.A, numbers.B)
		}
		all = append(all, did)
	}
	return "calls " + strings.Join(all, " and ")
}
