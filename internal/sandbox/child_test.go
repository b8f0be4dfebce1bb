package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"oneclaw/internal/sandbox"
)

// TestTheChildIsConfinedAndEndsWithItsParent talks to a child as the parent does.
func TestTheChildIsConfinedAndEndsWithItsParent(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], sandbox.ScriptArgument)
	cmd.Env = []string{}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const task = `{"source":"console.log('up'); Array.prototype.includes.call({length: 2 ** 53 - 1}, 1)"}`
	if _, err := io.WriteString(in, task+"\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, `"up"`) {
		t.Fatalf("%s, %v", line, err)
	}
	if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", cmd.Process.Pid)); err == nil {
		for name, want := range map[string]string{"Max core file size": "0", "Max file size": "0", "Max open files": "16"} {
			if !limited(string(limits), name, want) {
				t.Errorf("%s is not %s:\n%s", name, want, limits)
			}
		}
		if limited(string(limits), "Max address space", "unlimited") {
			t.Error("the address space is not bounded")
		}
	}
	// The parent is gone; the child is in a loop that looks at nothing.
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); !errors.As(err, new(*exec.ExitError)) {
		t.Errorf("ended with %v", err)
	}
}

// limited reports whether the soft limit of a name is as wanted.
func limited(limits, name, want string) bool {
	for line := range strings.Lines(limits) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.Fields(rest)[0] == want
		}
	}
	return false
}
