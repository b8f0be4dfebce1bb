package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// otherRoutings are the ways of routing tools beside the one of the other tests.
func otherRoutings() []string { return []string{"search", "all", "auto"} }

// TestTrialRoutingLeavesAnObedientModelNowhere repeats the attack of a page under the
// other ways of routing.
func TestTrialRoutingLeavesAnObedientModelNowhere(t *testing.T) {
	t.Parallel()
	for _, routing := range otherRoutings() {
		t.Run(routing, func(t *testing.T) { obeyAPage(t, routing) })
	}
}

// TestTrialRoutingKeepsApprovals calls what needs an approval under every way of
// routing: directly, and by way of tool_call, once and twice. It asks or is refused, and
// runs for nobody but who asked, after they have said yes.
func TestTrialRoutingKeepsApprovals(t *testing.T) {
	t.Parallel()
	command := map[string]any{"command": "echo once >> count.txt; echo it has run"}
	calls := map[string]map[string]any{
		"exec":      command,
		"tool_call": {"name": "exec", "arguments": command},
		"tool_call twice": {
			"name": "tool_call", "arguments": map[string]any{"name": "exec", "arguments": command},
		},
		"delete_scheduled_task":     {"task_id": "abc"},
		"tool_call with the delete": {"name": "delete_scheduled_task", "arguments": map[string]any{"task_id": "abc"}},
	}
	for _, routing := range otherRoutings() {
		t.Run(routing, func(t *testing.T) {
			s := telegramChatIn(t, newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
				last := req.Messages[len(req.Messages)-1]
				_, which, ok := strings.Cut(last.Content, "do it: ")
				if last.Role != "user" || !ok {
					return openai.Reply{Text: "Then: " + last.Content}, nil
				}
				name, _, _ := strings.Cut(which, " ")
				data, err := json.Marshal(calls[which])
				return openai.Reply{Calls: []openai.ToolCall{{ID: fmt.Sprint("c", len(req.Messages)), Name: name, Arguments: string(data)}}}, err
			})), true)
			s.w.env["ONECLAW_ROUTING"] = routing
			s.start()
			asked := 0
			for which := range calls {
				said := 0
				s.until("messages", func(all []shown) bool { said = len(all); return true })
				s.say(0, "do it: "+which)
				all := s.until("card or refusal", func(all []shown) bool { return len(all) > said })
				card := all[len(all)-1]
				if len(card.buttons) == 0 {
					continue // refused
				}
				asked++
				for label, data := range card.buttons {
					if got := s.press(1, card, data, false)(); !strings.HasPrefix(got, "Only the person who asked for this") {
						t.Errorf("%s: Bob presses %s and is told %q", which, label, got)
					}
				}
				if got := s.press(0, card, card.buttons["Deny"], false)(); got != "Denied." {
					t.Errorf("%s: toast %q", which, got)
				}
				s.until("the end of the turn", func(all []shown) bool { return len(all) > said+1 })
			}
			if n := s.w.runs(); n != 0 || asked == 0 {
				t.Errorf("asked %d times; it ran %d times unasked", asked, n)
			}
			s.say(0, "do it: exec")
			var card shown
			s.until("card", func(all []shown) bool {
				card = all[len(all)-1]
				return len(card.buttons) > 0
			})
			s.press(0, card, card.buttons["Allow once"], false)()
			s.one("Then:", "it has run")
			if n := s.w.runs(); n != 1 {
				t.Errorf("it ran %d times after one yes", n)
			}
		})
	}
}
