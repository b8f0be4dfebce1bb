package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
)

var updateRecordings = flag.Bool("update-recordings", false, "record the conversations in testdata/recorded again")

// recordedRules has a person allow what is written.
const recordedRules = "approvals:\n  - tool: write_file\n    policy: ask\n"

// TestRecordedConversationsAreReplayed records a conversation with a call of a tool that
// a person allows, and plays it and the one in the repository: the bot does the same. Where
// the recording has another answer, it says so.
func TestRecordedConversationsAreReplayed(t *testing.T) {
	t.Parallel()
	brain := doing("write_file", func(openai.Request) map[string]any { return map[string]any{"path": "note.txt", "content": "milk"} })
	onBothPlatforms(t, true, brain, func(s *stage) {
		file := filepath.Join(t.TempDir(), "recording.jsonl")
		s.w.settings(recordedRules)
		s.w.env["ONECLAW_ALLOW"] = "*"
		bot := startRecorded(s, file)
		s.say(0, "hello there")
		s.one("Then: ", "hello there")
		s.say(0, "do it")
		card := s.card("write_file", "milk")
		s.press(0, card, card.buttons["Allow once"], false)()
		s.one("Then:", "note.txt")
		s.one("write_file", "Allowed once")
		bot.kill(syscall.SIGTERM)

		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v: %v", err, info)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range s.w.env {
			if (strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_KEY")) && strings.Contains(string(data), value) {
				t.Errorf("%s is in the recording", name)
			}
		}
		platform, _, _ := strings.Cut(s.users[0], ":")
		kept := filepath.Join("testdata", "recorded", platform+".jsonl")
		if *updateRecordings {
			if err := os.WriteFile(kept, data, 0o644); err != nil { //nolint:gosec // a file of the repository
				t.Fatal(err)
			}
		}
		for _, path := range []string{file, kept} {
			if out, ok := replayed(t, path); !ok || !strings.Contains(out, "The bot does what was recorded") {
				t.Errorf("%s: %s", path, out)
			}
		}
		var changed strings.Builder
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "/sendMessage") || strings.Contains(line, "/chat.postMessage") {
				line = strings.ReplaceAll(line, "hello there", "good day")
			}
			changed.WriteString(line)
		}
		if err := os.WriteFile(file, []byte(changed.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		out, ok := replayed(t, file)
		if ok || strings.Count(out, "\n") != 2 {
			t.Errorf("with another answer: %s", out)
		}
		wantIn(t, out, "message 1 of the bot: recorded ", "good day", "; now ", "hello there", "differences from the recording: 1")
	})
}

// startRecorded starts the bot of a stage with a recording.
func startRecorded(s *stage, file string) *process {
	p := start(s.t, s.w.env, "run", "--record", file)
	p.out.await(s.t, `"started"`)
	p.out.await(s.t, "recording all messages")
	return p
}

// replayed plays a recording to a bot.
func replayed(t *testing.T, path string) (string, bool) {
	t.Helper()
	config := filepath.Join(t.TempDir(), config.ConfigName)
	if err := os.WriteFile(config, []byte(recordedRules), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ONECLAW_ALLOW": "*", "ONECLAW_LOG_LEVEL": "error"}
	out, err := labCommand(t.Context(), t, env, "--config", config, "replay", path).CombinedOutput()
	return string(out), err == nil
}
