package core_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"oneclaw/toolgroups/core"
)

// The sandbox shows nothing of the host that a command could change: every mount but
// the workspace and two bounded ones in memory is read-only. The test looks at the
// mounts and at the flags of the files, and writes to none of them.
func TestTheHostCannotBeChangedFromTheSandbox(t *testing.T) {
	needSandbox(t)
	d := newDesk(t, core.Config{})
	mayWrite := []string{d.dir, "/tmp", "/dev/shm"}
	mounted := map[string]bool{}
	table, _ := strings.CutPrefix(d.must(t, "exec", args{"command": "cat /proc/self/mountinfo"}), "[Exit Code: 0]\n\n")
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			t.Fatalf("mountinfo has the line %q", line)
		}
		at, flags := fields[4], strings.Split(fields[5], ",")
		mounted[at] = true
		device := strings.HasPrefix(at, "/dev/") // null, zero, full, random, urandom, tty, pts
		if !slices.Contains(flags, "ro") && !slices.Contains(mayWrite, at) && !device {
			t.Errorf("%s can be written: %s", at, line)
		}
		if !slices.Contains(flags, "nosuid") {
			t.Errorf("%s takes programs that change their user: %s", at, line)
		}
	}
	if !mounted["/proc"] || !mounted[d.dir] || mounted["/sys"] {
		t.Errorf("the sandbox mounts %v", mounted)
	}
	// What is covered is a device behind a mount without devices: test -f tells it apart.
	for _, command := range []string{
		"find /proc -path '/proc/[0-9]*' -prune -o -type f -writable -exec test -f {} ';' -print 2>/dev/null",
		"find / /dev -xdev \\( -type f -o -type d \\) -writable ! -exec test -c {} ';' -print 2>/dev/null | grep -vxF -e /dev/pts -e /tmp -e /dev/shm -e " + d.dir,
		"ls -d /sys",
	} {
		got := d.must(t, "exec", args{"command": command + " | head -n 20; true"})
		if !strings.HasPrefix(got, "[Exit Code: 0]\n\n(no output)") && !strings.Contains(got, "No such file") {
			t.Errorf("%s: %s", command, got)
		}
	}
}

// What the kernel tells root alone, and what container runtimes hide, is not there.
func TestTheKernelTellsNothingOfTheHost(t *testing.T) {
	needSandbox(t)
	d := newDesk(t, core.Config{})
	hidden := []string{"kcore", "keys", "timer_list", "sched_debug", "latency_stats", "interrupts", "cmdline"}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0 {
			hidden = append(hidden, entry.Name())
		}
	}
	for _, name := range hidden {
		if _, err := os.Lstat("/proc/" + name); err != nil {
			continue
		}
		got := d.must(t, "exec", args{"command": fmt.Sprintf("( : < /proc/%s ) 2>/dev/null && echo opened", name)})
		if strings.Contains(got, "opened") {
			t.Errorf("/proc/%s can be read", name)
		}
	}
	for _, dir := range []string{"acpi", "scsi", "asound"} {
		if got := d.must(t, "exec", args{"command": "ls -A /proc/" + dir + " 2>/dev/null; true"}); got != "[Exit Code: 0]\n\n(no output)" {
			t.Errorf("/proc/%s holds %s", dir, got)
		}
	}
}

// A command works as before: what programs expect to write to is there.
func TestProgramsStillFindWhatTheyNeed(t *testing.T) {
	needSandbox(t)
	d := newDesk(t, core.Config{})
	got := d.must(t, "exec", args{"command": "echo a > /tmp/a && echo b > /dev/shm/b && echo c > c && echo d > /dev/null && " +
		"cat /tmp/a /dev/shm/b c && echo e > /dev/stderr && cat /proc/self/comm && bash -c 'cat <(echo f)'"})
	if want := "[Exit Code: 0]\n\na\nb\nc\ncat\nf\n[stderr]\ne\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
