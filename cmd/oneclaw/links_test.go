package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestTheBotLinksNoEmulator: what stands in for services is in oneclaw-lab alone.
func TestTheBotLinksNoEmulator(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.Contains(name, "emulator") || strings.HasPrefix(name, "oneclaw/internal/lab/demo") {
			t.Errorf("the bot links %s", name)
		}
	}
}
