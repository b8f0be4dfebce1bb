package core_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/core"
)

// shells returns a desk per way to run commands that works here.
func shells(t *testing.T) map[string]*harness {
	t.Helper()
	out := map[string]*harness{"unsafe": newDesk(t, core.Config{Exec: core.ExecConfig{UnsafeExec: true}})}
	if sandboxed(t) {
		out["sandbox"] = newDesk(t, core.Config{})
	}
	return out
}

// sandboxed reports whether bubblewrap works on this machine.
func sandboxed(t *testing.T) bool {
	t.Helper()
	err := exec.CommandContext(t.Context(), "bwrap", "--unshare-all", "--unshare-user", "--disable-userns",
		"--ro-bind", "/", "/", "--proc", "/proc", "true").Run()
	return err == nil
}

func needSandbox(t *testing.T) {
	t.Helper()
	if !sandboxed(t) {
		t.Skip("bubblewrap does not work here")
	}
}

// admin runs a command as an administrator, whom the unsafe shell asks for.
func (d *harness) admin(t *testing.T, a args) (string, *toolgroups.Error) {
	t.Helper()
	tool := d.tools["exec"]
	tool.Role = toolgroups.RoleUser
	admin := &harness{dir: d.dir, tools: map[string]toolgroups.Tool{"exec": tool}}
	res, err := admin.run(t, "exec", a)
	return res.Text, err
}

func TestExec(t *testing.T) {
	t.Parallel()
	for name, d := range shells(t) {
		d.put(t, "sub/f.txt", "in file")
		for _, tc := range []struct {
			name string
			args args
			want string
		}{
			{"output", args{"command": "echo hi"}, "[Exit Code: 0]\n\nhi\n"},
			{"no output", args{"command": "true"}, "[Exit Code: 0]\n\n(no output)"},
			{"code and errors", args{"command": "echo out; echo err >&2; exit 3"}, "[Exit Code: 3]\n\nout\n[stderr]\nerr\n"},
			{"errors alone", args{"command": "echo err >&2"}, "[Exit Code: 0]\n\n[stderr]\nerr\n"},
			{"folder", args{"command": "cat f.txt", "working_directory": "sub"}, "[Exit Code: 0]\n\nin file"},
			{"absolute folder", args{"command": "cat f.txt", "working_directory": filepath.Join(d.dir, "sub")}, "[Exit Code: 0]\n\nin file"},
			{"input is closed", args{"command": "cat; echo end"}, "[Exit Code: 0]\n\nend\n"},
			{"writes", args{"command": "echo x > new.txt && cat new.txt"}, "[Exit Code: 0]\n\nx\n"},
			{
				"time limit",
				args{"command": "echo begun; sleep 100", "timeout_seconds": 10},
				"[Exit Code: -1] (the time limit of 10 s was over)\n\nbegun\n[stderr]\n[killed: the time limit of 10 s was over]",
			},
			{
				"time limit below the least",
				args{"command": "sleep 100", "timeout_seconds": -5},
				"[Exit Code: -1] (the time limit of 1 s was over)\n\n[stderr]\n[killed: the time limit of 1 s was over]",
			},
		} {
			t.Run(name+"/"+tc.name, func(t *testing.T) {
				t.Parallel()
				if got, err := d.admin(t, tc.args); err != nil || got != tc.want {
					t.Errorf("got\n%s\n%+v, want\n%s", got, err, tc.want)
				}
			})
		}
		for _, tc := range []struct {
			args args
			text string
		}{
			{args{"command": " "}, "blank"},
			{args{}, "'command'"},
			{args{"command": "true", "working_directory": "none"}, "'working_directory'"},
			{args{"command": "true", "working_directory": "sub/f.txt"}, "'working_directory'"},
			{args{"command": "true", "working_directory": "/etc"}, "'working_directory'"},
			{args{"command": "true", "working_directory": ".."}, "'working_directory'"},
		} {
			if got, err := d.admin(t, tc.args); err == nil || err.Code != "validation_error" || !strings.Contains(err.Message, tc.text) {
				t.Errorf("%s, %v: %q, %+v", name, tc.args, got, err)
			}
		}
	}
}

// A command sees nothing of the bot's environment.
func TestExecEnvironmentHoldsNoSecrets(t *testing.T) {
	t.Setenv("TELEGRAM_BOT_TOKEN", "the-secret")
	for name, d := range shells(t) {
		command := "env; tr '\\0' '\\n' < /proc/self/environ"
		if name == "sandbox" {
			// Without one the bot's own process can be seen.
			command += "; cat /proc/[0-9]*/environ 2>/dev/null"
		}
		got, err := d.admin(t, args{"command": command})
		if err != nil || strings.Contains(got, "the-secret") || !strings.Contains(got, "HOME="+d.dir) {
			t.Errorf("%s: %q, %+v", name, got, err)
		}
	}
}

// In the sandbox the workspace is the only writable place, and neither the
// files nor the network of the host are there.
func TestTheSandboxConfinesCommands(t *testing.T) {
	needSandbox(t)
	d := newDesk(t, core.Config{})
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("the-secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]string{
		"read outside":    "cat " + outside + "/secret",
		"write outside":   "echo x > " + outside + "/new",
		"write to usr":    "echo x > /usr/new",
		"settings":        "cat /etc/passwd /etc/shadow /root/.bashrc",
		"network":         "bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + port + " && echo connected'",
		"other processes": "test $(ls -d /proc/[0-9]* | wc -l) -gt 10",
		"user namespaces": "unshare -U true",
		"mounts":          "mount -t tmpfs x /mnt",
	} {
		got, fault := d.admin(t, args{"command": command})
		if fault != nil || strings.HasPrefix(got, "[Exit Code: 0]") || strings.Contains(got, "the-secret") || strings.Contains(got, "connected") {
			t.Errorf("%s: %s, %+v", name, got, fault)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside holds %v, %v", entries, err)
	}
}

// Commands see the programs below /usr, but no data of the bot there.
func TestCommandsSeeNoDataAmongThePrograms(t *testing.T) {
	needSandbox(t)
	const variable, own = "ONECLAW_TEST_MOUNTS", "mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work && mount -t overlay overlay -o lowerdir=/usr/lib,upperdir=/mnt/upper,workdir=/mnt/work /usr/lib"
	if os.Getenv(variable) == "" { // the test runs where its files below /usr are its own
		if out, err := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", own).CombinedOutput(); err != nil {
			t.Skipf("nothing can be mounted here: %v, %s", err, out)
		}
		cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", own+` && exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), variable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	const data = "/usr/lib/oneclaw-test"
	link := filepath.Join(t.TempDir(), "data")
	for path, text := range map[string]string{"secret.key": "the-secret", "workspaces/a/mine": "my file", "workspaces/b/mine": "the-secret"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(data, path)), 0o700), os.WriteFile(filepath.Join(data, path), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	dirs, short := []string{data, link}, strings.TrimPrefix(data, "/usr")
	if _, err := os.Stat(short); err == nil { // /lib is a link to /usr/lib
		dirs = append(dirs, short)
	}
	for _, dir := range dirs {
		d := newDesk(t, core.Config{Exec: core.ExecConfig{DataDir: dir}})
		d.dir = filepath.Join(dir, "workspaces/a")
		got, fault := d.admin(t, args{"command": "cat mine; echo new > new && cat new; cat " + data + "/secret.key " + short + "/secret.key " + data + "/workspaces/b/mine; echo x > " + data + "/x; ls /usr/bin/env"})
		if fault != nil || strings.Contains(got, "the-secret") || !strings.Contains(got, "my filenew\n") || !strings.Contains(got, "Read-only") || !strings.Contains(got, "/usr/bin/env") {
			t.Errorf("%s: %s, %+v", dir, got, fault)
		}
	}
}

// Without a sandbox there is no exec, unless that was asked for, and then only
// administrators have it.
func TestExecNeedsASandbox(t *testing.T) {
	d := newDesk(t, core.Config{Exec: core.ExecConfig{Sandbox: "/nonexistent/bwrap"}})
	d.fails(t, "exec", args{"command": "true"}, "execution_error", "not installed")
	// No person is asked to approve a command that cannot run.
	ready := func(d *harness) error {
		return d.tools["exec"].CheckReady(t.Context(), toolgroups.Call{Scope: d.scope()})
	}
	if fault, ok := errors.AsType[*toolgroups.Error](ready(d)); !ok || !strings.Contains(fault.Message, "not installed") {
		t.Errorf("ready: %v", fault)
	}
	d = newDesk(t, core.Config{Exec: core.ExecConfig{Sandbox: "/bin/false"}})
	if res, err := d.run(t, "exec", args{"command": "true"}); err == nil && strings.HasPrefix(res.Text, "[Exit Code: 0]") {
		t.Errorf("ran without a sandbox: %q", res.Text)
	}
	d = newDesk(t, core.Config{Exec: core.ExecConfig{UnsafeExec: true, Sandbox: "/nonexistent/bwrap"}})
	d.fails(t, "exec", args{"command": "true"}, "permission_denied", "administrators")
	if err := ready(d); err != nil {
		t.Error(err)
	}
}

// A command that writes without end is neither blocked nor kept in memory.
func TestExecOutputIsBounded(t *testing.T) {
	for name, d := range shells(t) {
		got, err := d.admin(t, args{"command": "yes abcdefghi | head -c 5000000; yes err | head -c 50000 >&2; exit 7"})
		if err != nil || !strings.HasPrefix(got, "[Exit Code: 7]") || len(got) > toolgroups.MaxText {
			t.Fatalf("%s: %d characters, %+v", name, len(got), err)
		}
		for _, want := range []string{"abcdefghi\n[stderr]\nerr\n", "stdout had 5000000 bytes, stderr 50000", "tool-output/exec-"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing, ends %q", name, want, got[len(got)-300:])
			}
		}
		short, err := d.admin(t, args{"command": "seq 100000", "max_length": 10})
		if err != nil || !strings.HasPrefix(short, "[Exit Code: 0]\n\n1\n2\n3\n4\n5\n[cut: ") {
			t.Errorf("%s: %.200q, %+v", name, short, err)
		}
	}
}

// What a command leaves running ends with it: only then is the pipe at its end.
func TestExecKillsWhatIsLeft(t *testing.T) {
	for name, d := range shells(t) {
		pipe := filepath.Join(d.dir, "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		end := make(chan error, 1)
		go func() {
			_, err := os.ReadFile(pipe)
			end <- err
		}()
		got, err := d.admin(t, args{"command": "exec 9>pipe; sleep 1000 >/dev/null 2>&1 & echo left", "timeout_seconds": 100})
		if err != nil || got != "[Exit Code: 0]\n\nleft\n" {
			t.Fatalf("%s: %q, %+v", name, got, err)
		}
		if err := <-end; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A command that multiplies is stopped, whoever the bot runs as.
func TestForkBombIsStopped(t *testing.T) {
	needSandbox(t)
	d := newDesk(t, core.Config{Exec: core.ExecConfig{MaxProcesses: 20}})
	got, err := d.admin(t, args{"command": "for i in $(seq 60); do sleep 30 & done; wait; echo all", "timeout_seconds": 20})
	if t.Logf("%q", got); err != nil || strings.Contains(got, "all\n") && !strings.Contains(got, "fork") {
		t.Errorf("%q, %+v", got, err)
	}
}

// Commands without a network reach nobody, so a user may allow one for longer.
func TestOnlyCommandsWithoutANetworkMayBeAllowedForLonger(t *testing.T) {
	for _, network := range []bool{false, true} {
		d := newDesk(t, core.Config{Exec: core.ExecConfig{Network: network}})
		if got := d.tools["exec"].LastingApproval; got == network {
			t.Errorf("with a network %v: %v", network, got)
		}
	}
	for name, tool := range newDesk(t, core.Config{}).tools {
		if tool.LastingApproval != (name == "exec") {
			t.Errorf("%s may be allowed for longer: %v", name, tool.LastingApproval)
		}
	}
}
