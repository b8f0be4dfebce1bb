package service_test

import (
	"bytes"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"oneclaw/internal/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSystemdTakesTheUnit has systemd's own parser read both units: it says nothing about them.
func TestSystemdTakesTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	for _, user := range []bool{false, true} {
		text, err := service.Unit(service.Options{UserService: user, Program: "/bin/true"})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), service.Name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"verify", "--man=no", "--recursive-errors=no", file}
		if user {
			args = append([]string{"--user"}, args...)
		}
		cmd := exec.CommandContext(t.Context(), analyze, args...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "HOME="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte(service.Name)) {
			t.Errorf("user=%v: %v\n%s", user, err, out)
		}
	}
}

// stub puts a program into a folder that writes down how it is called.
func stub(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho \""+name+" $*\" >>\"$CALLS\"\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
}

// world has systemd's programs replaced; calls returns how they were called since the last time.
func world(t *testing.T) (dir string, calls func() string) {
	dir = t.TempDir()
	file := filepath.Join(dir, "calls")
	stub(t, dir, "systemctl", "")
	stub(t, dir, "systemd-sysusers", "")
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	t.Setenv("CALLS", file)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	return dir, func() string {
		data, _ := os.ReadFile(file) // nothing was called
		_ = os.Remove(file)
		return string(data)
	}
}

func TestAServiceIsInstalledAndRemoved(t *testing.T) {
	dir, calls := world(t)
	for name, c := range map[string]struct {
		i                     service.Installer
		file                  string
		installing, uninstall string
	}{
		"system": {
			service.Installer{Options: service.Options{Program: "/usr/local/bin/oneclaw"}, Root: dir, Now: true},
			filepath.Join(dir, "/etc/systemd/system/oneclaw.service"),
			"systemd-sysusers " + dir + "/etc/sysusers.d/oneclaw.conf\nsystemctl daemon-reload\nsystemctl enable --now oneclaw.service\n",
			"systemctl disable --now oneclaw.service\nsystemctl daemon-reload\n",
		},
		"user": {
			service.Installer{Options: service.Options{Program: "/home/ann/bin/oneclaw", UserService: true}},
			filepath.Join(dir, "config/systemd/user/oneclaw.service"),
			"systemctl --user daemon-reload\nsystemctl --user enable oneclaw.service\n",
			"systemctl --user disable --now oneclaw.service\nsystemctl --user daemon-reload\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			c.i.Out = &out
			if err := c.i.Uninstall(t.Context()); err == nil || !strings.Contains(err.Error(), c.file) {
				t.Errorf("uninstalled what is not there: %v", err)
			}
			for range 2 { // the second time it is an upgrade
				if err := c.i.Install(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := calls(); got != c.installing {
					t.Errorf("called\n%swant\n%s", got, c.installing)
				}
			}
			text, err := service.Unit(c.i.Options)
			if data, readErr := os.ReadFile(c.file); err != nil || readErr != nil || string(data) != text {
				t.Errorf("the unit: %v, %v\n%s", err, readErr, data)
			}
			for folder, mode := range map[string]fs.FileMode{filepath.Dir(service.SettingsFile): 0o755, service.SecretsDir: 0o700} {
				if info, err := os.Stat(filepath.Join(dir, folder)); name == "system" && (err != nil || info.Mode().Perm() != mode) {
					t.Errorf("%s: %v, %v", folder, info, err)
				}
			}
			if err := c.i.Uninstall(t.Context()); err != nil || calls() != c.uninstall {
				t.Errorf("uninstall: %v", err)
			}
			if _, err := os.Stat(c.file); err == nil {
				t.Error("the unit is still there")
			}
		})
	}
}

func TestWhatIsNotInstalled(t *testing.T) {
	dir, calls := world(t)
	system := service.Installer{Options: service.Options{Program: "/usr/local/bin/oneclaw"}, Root: dir, Out: &strings.Builder{}}
	refused := func(i service.Installer, want string) {
		t.Helper()
		if err := i.Install(t.Context()); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", i.Program, err, want)
		}
		if got := calls(); strings.Contains(got, "enable") {
			t.Errorf("called %s", got)
		}
	}
	for program, want := range map[string]string{
		"/home/ann/oneclaw": "cannot see", "/root/oneclaw": "cannot see", "/tmp/go-build1/oneclaw": "cannot see",
		"oneclaw": "cannot stand in a unit", "/opt/one claw": "cannot stand in a unit", "/opt/100%h": "cannot stand in a unit", "/opt/a\nUser=root": "cannot stand in a unit",
	} {
		i := system
		i.Program = program
		refused(i, want)
	}
	file := filepath.Join(dir, "etc/systemd/system/oneclaw.service")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("[Service]\nExecStart=/opt/mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(system, "not written by oneclaw")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	stub(t, dir, "systemctl", "echo no bus >&2; exit 1")
	refused(system, "no bus")
	// Who starts it before there are secrets reads where they go.
	stub(t, dir, "systemctl", "case \"$*\" in *--now*) echo failed >&2; exit 1;; esac")
	var out strings.Builder
	system.Out, system.Now = &out, true
	if err := system.Install(t.Context()); err == nil || !strings.Contains(err.Error(), "did not start") || !strings.Contains(out.String(), service.SecretsDir) || strings.Contains(out.String(), "is started") {
		t.Errorf("started without secrets: %v, %s", err, &out)
	}
	calls()
	t.Setenv("PATH", t.TempDir())
	refused(system, "no systemd")
}

func TestSystemdIsTold(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := service.Notify(t.Context(), service.Ready); err != nil {
		t.Errorf("without systemd: %v", err)
	}
	for _, address := range []string{filepath.Join(t.TempDir(), "notify"), "@oneclaw-test-" + filepath.Base(t.TempDir())} {
		socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("NOTIFY_SOCKET", address)
		if err := service.Notify(t.Context(), service.Ready); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		data := make([]byte, 100)
		if n, _, err := socket.ReadFrom(data); err != nil || string(data[:n]) != "READY=1" {
			t.Errorf("%s: %q, %v", address, data[:n], err)
		}
		if err := socket.Close(); err != nil {
			t.Error(err)
		}
	}
}
