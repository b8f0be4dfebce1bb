package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/doctor"
	"oneclaw/internal/emulator/openai"
)

// opener is the model of the demo, which also opens a page in the browser when it is asked to.
type opener struct{ openai.Offline }

// Reply implements openai.Responder.
func (o opener) Reply(ctx context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	switch {
	case last.Role == "user" && strings.Contains(last.Content, "open the page"):
		return openai.Reply{Calls: []openai.ToolCall{{ID: "call_open", Name: "browser", Arguments: `{"url":"https://example.org","mode":"extract"}`}}}, nil
	case last.Role == "tool" && strings.Contains(last.Content, "No page can be opened"):
		return openai.Reply{Text: last.Content}, nil
	}
	return o.Offline.Reply(ctx, req)
}

// TestWithoutOptionalPrograms runs the bot where PATH has no program, as in its image: pictures, documents,
// speech and imports need none, and what needs one says in one line which.
func TestWithoutOptionalPrograms(t *testing.T) {
	t.Parallel()
	w := newHarness(t, opener{})
	w.env["PATH"] = "/nonexistent"
	w.withImages()
	w.withSpeech()
	w.settings("approvals: [{tool: browser, policy: allow}]\n")
	s := telegramChatIn(t, w, false)
	bot := s.start()
	s.say(0, "draw a cat")
	s.one("Here is a cat.")
	s.picture(1024, 1024)
	s.say(0, "Make a spreadsheet: item, cost; rent, 900; food, 400")
	s.one("Here is table.xlsx")
	s.say(0, "Read table.xlsx")
	s.one("Excel workbook, 1 sheet")
	s.say(0, "run echo hello")
	s.one("Commands cannot run here: bubblewrap is not installed (on Debian: apt install bubblewrap")
	s.say(0, "open the page")
	s.one("there is no Chromium on the bot's machine; the operator can install the package chromium")
	s.say(0, "/voice on")
	s.one("I speak my answers here.")
	s.say(0, "1+1")
	s.one("1+1 =")
	s.until("a voice note", func(all []shown) bool {
		return slices.ContainsFunc(all, func(m shown) bool { return strings.HasPrefix(string(m.file.data), "OggS") })
	})
	found, _ := examined(t, w.env)
	for _, name := range []string{"exec", "browser"} {
		if f := found[name]; f.Status != doctor.VerdictWarn || strings.Contains(f.Text, "\n") || !strings.Contains(f.Text, "install") {
			t.Errorf("doctor on %s: %+v", name, f)
		}
	}
	bot.kill(syscall.SIGTERM)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("model: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantIn(t, s.cli("import", "hermes", dir, "--dry-run"), "- model", "+ 0 taken over")
}
