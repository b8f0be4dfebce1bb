package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
)

// openTerminal returns the two ends of a terminal: of a person, and of a program.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here")
	}
	t.Cleanup(func() { _ = person.Close() }) // nothing is read any more
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return person, program
}

// awaitHidden waits until a terminal no longer shows what is typed, which is after the prompt.
func awaitHidden(t *testing.T, terminal *os.File) {
	t.Helper()
	for {
		mode, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if mode.Lflag&unix.ECHO == 0 {
			return
		}
		runtime.Gosched()
	}
}

// TestSetupAsksAgainInATerminal answers wrongly, goes back, and ends with what was answered last.
func TestSetupAsksAgainInATerminal(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	token, key, address := w.env["TELEGRAM_BOT_TOKEN"], w.env["OPENAI_API_KEY"], w.env["OPENAI_BASE_URL"]
	for _, name := range []string{"TELEGRAM_BOT_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "ONECLAW_ALLOW"} {
		delete(w.env, name)
	}
	w.env["ONECLAW_DATA_DIR"], w.env["TZ"] = filepath.Join(t.TempDir(), "a bot's data"), "UTC"
	person, program := openTerminal(t)
	cmd := command(t.Context(), t, w.env, "setup")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := program.Close(); err != nil {
		t.Fatal(err)
	}
	screen := ""
	read := func(until string) string {
		before := len(screen)
		for data := make([]byte, 4096); !strings.Contains(screen[before:], until); {
			n, err := person.Read(data)
			if screen += strings.ReplaceAll(string(data[:n]), "\r", ""); err != nil {
				t.Fatalf("%q does not come: %v\n%s", until, err, screen)
			}
		}
		return screen[before:]
	}
	for _, step := range []struct{ answer, says, asks string }{
		{"", "Where do people reach the bot?", "[1]: "},
		{"7", `"7" is none of them`, "[1]: "},
		{"slack", "Slack app", "paste it): "},
		{"hello", "begins with xoxb-", "paste it): "},
		{"back", "Where do people reach the bot?", "[1]: "},
		{"", "@BotFather", "paste it): "},
		{"12345:" + strings.Repeat("x", 35), "does not know this token", "paste it): "},
		{token, "This is @oneclaw_bot.", "[1]: "},
		{"another address", "Address", "8080/v1: "},
		{"", "is no address", "8080/v1: "},
		{"http://127.0.0.1:1/v1", "nothing answers at http://127.0.0.1:1/v1: dial tcp", "8080/v1: "},
		{"back", "Which language model?", "[1]: "},
		{"6", "Address", "8080/v1: "},
		{address, "an empty line if it wants none", "paste it): "},
		{"sk-wrong", "refuses the key", "paste it): "},
		{key, "The key works.", "]: "},
		{"back", "an empty line if it wants none", "paste it): "},
		{key, "The key works.", "]: "},
		{"nothing like it", "the service has no model", "]: "},
		{"", "where you live", "[UTC]: "},
		{"Nowhere", "no list of time zones", "[UTC]: "},
		{"new york, usa", "In America/New_York it is ", ""},
	} {
		if step.says != "Where do people reach the bot?" || step.answer != "" {
			if _, err := person.WriteString(step.answer + "\n"); err != nil {
				t.Fatal(err)
			}
		}
		if step.asks == "" {
			step.asks = "to send it."
		}
		if shown := read(step.asks); !strings.Contains(shown, step.says) {
			t.Fatalf("after %q: %q does not say %q", step.answer, shown, step.says)
		}
		if strings.Contains(step.asks, "paste") {
			awaitHidden(t, person)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("setup: %v\n%s", err, screen)
	}
	for what, secret := range map[string]string{"the token": token, "the key": key} {
		if strings.Contains(screen, secret) {
			t.Errorf("%s is shown", what)
		}
	}
	wantIn(t, screen, "cd "+cmd.Dir+" && ONECLAW_DATA_DIR='"+strings.ReplaceAll(w.env["ONECLAW_DATA_DIR"], "'", `'\''`)+"' oneclaw run\n")
	file, err := os.ReadFile(filepath.Join(w.env["ONECLAW_DATA_DIR"], config.ConfigName))
	if err != nil {
		t.Fatal(err)
	}
	wantIn(t, string(file), "base_url: "+address+"\n", "token: "+token+"\n", "timezone: America/New_York\n")
	if strings.Contains(string(file), "slack") {
		t.Errorf("what was taken back is saved: %s", file)
	}
	all, _ := examined(t, w.env)
	wantIn(t, all["time zone"].Text, "America/New_York")
}
