package core_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/core"
)

// Processes that are small each by itself are bounded by what they take together.
func TestMemoryOfAllProcessesIsBounded(t *testing.T) {
	t.Parallel()
	for name := range shells(t) {
		d := newDesk(t, core.Config{Exec: core.ExecConfig{UnsafeExec: name == "unsafe", MaxTotalMemory: 100 << 20}})
		// tail keeps what has no line in memory, until its input ends.
		const hold = "(head -c 50000000 /dev/zero; sleep 60) | tail >/dev/null & "
		got, err := d.admin(t, args{"command": hold + hold + hold + "wait", "timeout_seconds": 50})
		if err != nil || !strings.Contains(got, "[killed: its processes took more than the limit of 100 MiB of memory]") {
			t.Errorf("%s: %q, %+v", name, got, err)
		}
		if got, err := d.admin(t, args{"command": "head -c 50000000 /dev/zero | tail | wc -c"}); err != nil || !strings.Contains(got, "\n50000000\n") {
			t.Errorf("%s: a command within the limit: %q, %+v", name, got, err)
		}
	}
}

// confined runs a tool in a workspace with a quota and a reserve.
func (d *harness) confined(t *testing.T, quota, reserve int64, tool string, a string) (string, *toolgroups.Error) {
	t.Helper()
	scope := d.scope()
	scope.Quota, scope.Reserve, scope.Role = quota, reserve, toolgroups.RoleAdmin
	res, err := toolgroups.Run(t.Context(), nil, d.tools[tool], toolgroups.Call{Name: tool, Arguments: []byte(a), Scope: scope})
	return res.Text, err
}

func TestWriteFileKeepsToQuotaAndReserve(t *testing.T) {
	t.Parallel()
	d := newDesk(t, core.Config{})
	write := `{"path": "a", "mode": "append", "content": "` + strings.Repeat("x", 500<<10) + `"}`
	if _, err := d.confined(t, 1<<20, 1, "write_file", write); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := d.confined(t, 1<<20, 1, "write_file", write)
		if err != nil && strings.Contains(err.Message, "workspace is full") {
			break
		}
		if info, statErr := os.Stat(filepath.Join(d.dir, "a")); statErr != nil || info.Size() > 1<<20 {
			t.Fatalf("%v bytes, %+v", info.Size(), err)
		}
	}
	_, err := d.confined(t, 1<<30, 1<<60, "write_file", `{"path": "b", "content": "x"}`)
	if err == nil || !strings.Contains(err.Message, "disk of the bot is nearly full") {
		t.Errorf("into the reserve: %+v", err)
	}
}

// A command that writes more than there is room for is stopped, and in a full workspace
// it can only delete.
func TestCommandsKeepToTheQuota(t *testing.T) {
	t.Parallel()
	for name, d := range shells(t) {
		t.Run(name, func(t *testing.T) {
			const quota = 8 << 20
			run := func(command string) string {
				t.Helper()
				got, err := d.confined(t, quota, 1, "exec", `{"command": "`+command+`", "timeout_seconds": 50}`)
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			// One file, and many.
			if got := run("head -c 20000000 /dev/zero > big; ls -l big | cut -d' ' -f5"); strings.Contains(got, "20000000") {
				t.Errorf("one file: %s", got)
			}
			run("rm big")
			if got := run("for i in 1 2 3; do head -c 4000000 /dev/zero > f$i; done; sleep 60"); !strings.Contains(got, "[killed: the workspace is full") {
				t.Errorf("many files: %s", got)
			}
			got := run("echo more >> f1; echo new > new; ls -s new; cat f1 | wc -c")
			if strings.Contains(got, "4000005") || !strings.Contains(got, "nothing could be written to files: the workspace is full") {
				t.Errorf("in a full workspace: %s", got)
			}
			if got := run("rm -f f1 f2 new && ls"); !strings.Contains(got, "f3\n") {
				t.Errorf("to make room: %s", got)
			}
			if got := run("echo again > new && cat new"); got != "[Exit Code: 0]\n\nagain\n" {
				t.Errorf("with room: %s", got)
			}
		})
	}
}

// Holes of files count, so that a full workspace cannot be filled through them.
func TestCommandsCannotHideFiles(t *testing.T) {
	for name, d := range shells(t) {
		got, err := d.confined(t, 8<<20, 1, "exec", `{"command": "for i in 1 2 3; do truncate -s 4M f$i; done; sleep 60", "timeout_seconds": 50}`)
		if err != nil || !strings.Contains(got, "[killed: the workspace is full") {
			t.Errorf("%s: %s, %+v", name, got, err)
		}
	}
}

func TestCommandsLeaveTheReserve(t *testing.T) {
	t.Parallel()
	for name, d := range shells(t) {
		got, err := d.confined(t, 1<<30, 1<<60, "exec", `{"command": "echo x > a; cat a"}`)
		if err != nil || strings.Contains(got, "\nx\n") || !strings.Contains(got, "disk of the bot is nearly full") {
			t.Errorf("%s: %s, %+v", name, got, err)
		}
	}
}

// No system call takes the disk at once, or memory that belongs to no process.
func TestCommandsGetNeitherDiskNorMemoryAtOnce(t *testing.T) {
	needSandbox(t)
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("no filter of system calls for this machine")
	}
	d := newDesk(t, core.Config{})
	got := d.must(t, "exec", args{"command": "touch a b; fallocate -n -l 20M a; fallocate -l 20M b; ls -s a b; grep Seccomp: /proc/self/status; ipcmk -M 1000000"})
	for _, want := range []string{"not supported", "0 a", "0 b", "Seccomp:\t2", "not implemented"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
}
