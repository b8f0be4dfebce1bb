package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// TestTheHostsTimeZoneNeedsNoName has it as a file that says nothing of its name, and as the path of one.
func TestTheHostsTimeZoneNeedsNoName(t *testing.T) {
	t.Parallel()
	const named = "/usr/share/zoneinfo/Asia/Kathmandu"
	zone, err := os.ReadFile(named)
	if err != nil {
		t.Skip("there are no time zones here")
	}
	copied := filepath.Join(t.TempDir(), "localtime")
	if err := os.WriteFile(copied, zone, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tz := range []string{copied, named} {
		w := newHarness(t, openai.Offline{})
		w.env["TZ"] = tz
		bot := w.run()
		wantIn(t, w.ask(bot, w.person("Ann"), "/status", nil), "+0545")
		bot.kill(syscall.SIGTERM)
	}
}
