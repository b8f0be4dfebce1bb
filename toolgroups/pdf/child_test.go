package pdf_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/toolgroups/pdf"
)

// TestTheChildIsConfinedAndEndsWithItsParent talks to a child as the parent does.
//
// Attack 04.
func TestTheChildIsConfinedAndEndsWithItsParent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bomb.pdf")
	if err := os.WriteFile(path, bomb(t, 0).bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	cmd := exec.CommandContext(t.Context(), os.Args[0], pdf.Argument)
	cmd.Env, cmd.ExtraFiles = []string{}, []*os.File{file}
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
	setup := fmt.Sprintf(`{"cache_dir":%q,"max_memory":%d,"max_file":1000000}`, cacheDir(), pdf.DefaultMaxMemory)
	if _, err := io.WriteString(in, setup+"\n"); err != nil {
		t.Fatal(err)
	}
	replies := bufio.NewReader(out)
	for _, want := range []string{"{}\n", `{"count":1}` + "\n"} {
		if line, err := replies.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", cmd.Process.Pid)); err == nil {
		for line := range strings.Lines(string(limits)) {
			for name, bad := range map[string]bool{
				"Max core file size": !strings.Contains(line, " 0 "), "Max file size": !strings.Contains(line, " 0 "),
				"Max open files": !strings.Contains(line, " 16 "), "Max address space": strings.Contains(line, "unlimited"),
				"Max cpu time": strings.Contains(line, "unlimited"),
			} {
				if strings.HasPrefix(line, name) && bad {
					t.Error(line)
				}
			}
		}
	}
	// The parent asks for what takes hours, and is gone.
	if _, err := io.WriteString(in, `{"ask":"text","page":1,"limit":1000}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); !errors.As(err, new(*exec.ExitError)) {
		t.Errorf("ended with %v", err)
	}
}
