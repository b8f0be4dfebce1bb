package sandbox_test

import (
	"slices"
	"strings"
	"testing"

	"oneclaw/internal/sandbox"
	"oneclaw/internal/sandbox/sandboxtest"
)

// TestTheChildIsConfinedAndEndsWithItsParent talks to a child as the parent does.
func TestTheChildIsConfinedAndEndsWithItsParent(t *testing.T) {
	child := sandboxtest.Start(t, sandbox.ScriptArgument, "")
	child.Send(t, `{"source":"console.log('up'); Array.prototype.includes.call({length: 2 ** 53 - 1}, 1)"}`)
	if line, err := child.ReadLine(); err != nil || !strings.Contains(line, `"up"`) {
		t.Fatalf("%s, %v", line, err)
	}
	loose := slices.DeleteFunc(child.WrongLimits(t), func(name string) bool { return name == "Max cpu time" }) // the parent bounds it
	if len(loose) > 0 {
		t.Errorf("not confined: %q", loose)
	}
	child.CheckEndsWithParent(t) // in a loop that looks at nothing
}
