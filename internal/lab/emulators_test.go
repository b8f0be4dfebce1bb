package lab

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
)

// TestABotUsesTheEmulators takes the settings that the command prints for a bot, and has the
// person in Telegram and in Slack say what the printed lines say.
func TestABotUsesTheEmulators(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	out, w := io.Pipe()
	ended := make(chan error, 2)
	go func() { ended <- errors.Join(runEmulators(ctx, w, 0, "ollama"), w.Close()) }()
	environ := []string{"ONECLAW_DATA_DIR=" + t.TempDir(), "ONECLAW_LISTEN=127.0.0.1:0", "PATH=" + os.Getenv("PATH")}
	var says [][]string
	said := regexp.MustCompile(`-d '(.*)' (http\S+)/emulator/say`)
	for lines := bufio.NewScanner(out); len(says) < 2 && lines.Scan(); {
		if settings, ok := strings.CutPrefix(lines.Text(), "export "); ok {
			environ = append(environ, strings.Fields(settings)...)
		}
		if m := said.FindStringSubmatch(lines.Text()); m != nil {
			says = append(says, m)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // until the writer closes it
	cfg, err := config.Load("", environ)
	if err != nil || len(says) != 2 {
		t.Fatalf("%v, %q", err, says)
	}
	beside := func(ctx context.Context) error { <-ctx.Done(); return nil }
	go func() { ended <- app.Run(ctx, cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), beside) }()
	for _, say := range says {
		request(t, http.MethodPost, say[2]+"/emulator/say", say[1])
		chat := regexp.MustCompile(`"(chat|channel)":"?(\w+)`).FindStringSubmatch(say[1])
		all := request(t, http.MethodGet, say[2]+"/emulator/messages?answers=1&seconds=60&"+chat[1]+"="+chat[2], "")
		if !strings.Contains(all, "I am OneClaw") {
			t.Errorf("%s: %s", say[2], all)
		}
	}
	stop()
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Error(err)
	}
}

// The last of the ports is taken.
func TestEmulatorsEndIfAPortIsTaken(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 20 {
		taken, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = taken.Close() }()
		err = runEmulators(ctx, io.Discard, taken.Addr().(*net.TCPAddr).Port-5, profiles()[0])
		if err == nil || ctx.Err() != nil {
			t.Fatalf("%v, %v", err, ctx.Err())
		}
		if strings.Contains(err.Error(), taken.Addr().String()) {
			return
		}
		t.Logf("one of the ports before it is taken too: %v", err)
	}
	t.Error("the last port is never the one that is in use")
}

func request(t *testing.T, method, address, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %s (%v)", address, resp.Status, data, err)
	}
	return string(data)
}
