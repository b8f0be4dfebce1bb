package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// slowBody begins a request whose body never comes whole.
func slowBody(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "POST /slack/events HTTP/1.1\r\nHost: bot\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestSlowBodiesLeaveThePlatformsAlone gives the program few descriptors and holds
// more connections to its port than that.
//
// Slow requests leave the platforms their descriptors.
func TestSlowBodiesLeaveThePlatformsAlone(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.env["ONECLAW_LISTEN"] = freeAddress(t)
	ann := w.person("Ann")
	before := 0
	w.telegram.View(func(s telegram.State) { before = s.PollCount() })
	bot := startLimited(t, w.env, 256)
	w.until(bot, "a poll", func(s telegram.State) bool { return s.PollCount() > before })
	var slow []net.Conn
	for range 300 {
		slow = append(slow, slowBody(t, w.env["ONECLAW_LISTEN"]))
	}
	for n := range 3 {
		wantIn(t, w.ask(bot, ann, fmt.Sprint("hello ", n), nil), "the real one")
	}
	for _, conn := range slow {
		_ = conn.Close()
	}
	wantIn(t, get(t, "http://"+w.env["ONECLAW_LISTEN"]+"/healthz"), "ok")
}

// startLimited starts the bot with so many descriptors.
func startLimited(t *testing.T, env map[string]string, descriptors int) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary is the program where it is called so.
	program := filepath.Join(t.TempDir(), programName)
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	cmd := command(context.Background(), t, env)
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, descriptors), program, "run"}
	return startCommand(t, cmd)
}
