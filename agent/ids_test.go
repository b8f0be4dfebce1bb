package agent_test

import (
	"testing"

	"oneclaw/agent"
)

// Calls of a model that gives no ids get some that occur once in the conversation.
//
// Servers differ in which ids of calls they take.
func TestIDsMadeByHandAreUnique(t *testing.T) {
	c := newChat(t, agent.Config{})
	without := calls(` read_file {"path":"a"}`, ` read_file {"path":"b"}`)
	for _, text := range []string{"first", "second"} {
		c.say(text, without, without, says("done"))
	}
	seen := map[string]bool{}
	for _, m := range c.history {
		for _, call := range m.Calls {
			if call.ID == "" || seen[call.ID] {
				t.Errorf("the id %q is missing or occurs twice", call.ID)
			}
			seen[call.ID] = true
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d ids", len(seen))
	}
}
