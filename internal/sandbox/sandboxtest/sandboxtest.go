// Package sandboxtest lets tests talk to a confined child as its parent does.
package sandboxtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Child is a process of the test binary.
type Child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start starts the test binary with an argument. The file
// at the path document, if any, becomes its descriptor 3.
func Start(t *testing.T, argument, document string) *Child {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], argument)
	cmd.Env = []string{}
	if document != "" {
		file, err := os.Open(document) //nolint:gosec // written by the test
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		cmd.ExtraFiles = []*os.File{file}
	}
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
	return &Child{cmd, in, bufio.NewReader(out)}
}

// Send sends a line to the child.
func (c *Child) Send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// ReadLine returns the next line of the child.
func (c *Child) ReadLine() (string, error) { return c.out.ReadString('\n') }

// WrongLimits returns the names of limits that differ from those of
// a confined process; none if the system does not report limits.
func (c *Child) WrongLimits(t *testing.T) (names []string) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", c.cmd.Process.Pid))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	limits := string(data)
	for name, want := range map[string]string{"Max core file size": "0", "Max file size": "0", "Max open files": "16"} {
		if softLimit(limits, name) != want {
			names = append(names, name)
		}
	}
	for _, name := range []string{"Max address space", "Max cpu time"} {
		if is := softLimit(limits, name); is == "" || is == "unlimited" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// softLimit returns a soft limit; empty if there is no such limit.
func softLimit(limits, name string) string {
	for line := range strings.Lines(limits) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.Fields(rest)[0]
		}
	}
	return ""
}

// CheckEndsWithParent closes the child's input, and checks that the child ends silently.
func (c *Child) CheckEndsWithParent(t *testing.T) {
	t.Helper()
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	if line, err := c.ReadLine(); !errors.Is(err, io.EOF) {
		t.Errorf("it answered %q, %v", line, err)
	}
	if err := c.cmd.Wait(); !errors.As(err, new(*exec.ExitError)) {
		t.Errorf("ended with %v", err)
	}
}
