package bridge_test

import (
	"testing"

	"oneclaw/bridge"
	"oneclaw/bridge/interact"
	"oneclaw/toolgroups"
)

// TestWhatIsNoRuleAsks: the zero value and whatever nobody knows ask.
//
// Small faults: a field, a default, a task of a removed platform.
func TestWhatIsNoRuleAsks(t *testing.T) {
	t.Parallel()
	for _, rule := range []interact.Rule{"", interact.Ask, "ALLOW", "yes"} {
		w := &execTools{}
		r := w.guarded(t, func(c *bridge.Config) {
			c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return interact.Policy{Rule: rule} }
		})
		r.accept(direct("1", "run a"))
		r.untilHeld()
		r.stop()
	}
}
