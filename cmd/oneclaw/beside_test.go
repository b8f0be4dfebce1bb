package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/settings"
)

// Commands that read a conversation or store a key work beside the bot that has the database,
// through a socket that its user alone may open.
func TestCommandsWorkBesideARunningBot(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	w.env["ONECLAW_ADMINS"] = fmt.Sprint("telegram:", ann)
	bot := w.run()
	w.ask(bot, ann, "what is this about?", nil)
	cli := func(input string, args ...string) (string, error) {
		cmd := command(t.Context(), t, w.env, args...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	chat := fmt.Sprint("telegram:", ann)
	out, err := cli("", "history", chat)
	if err != nil {
		t.Fatalf("history: %v: %s", err, out)
	}
	wantIn(t, out, "what is this about?")
	w.ask(bot, ann, "clear\x1b[2J\u009b2J the screen", nil)
	if out, err = cli("", "history", chat); err != nil || strings.ContainsAny(out, "\x1b\u009b") {
		t.Errorf("what people write reaches the terminal: %v: %q", err, out)
	}
	wantIn(t, out, "the screen")
	out, err = cli("", "history", "--json", chat)
	var first agent.Message
	if err != nil || json.Unmarshal(bytes.SplitN([]byte(out), []byte("\n"), 2)[0], &first) != nil || first.Text != "what is this about?" {
		t.Errorf("history as JSON: %v: %s", err, out)
	}
	out, err = cli("sk-very-secret\n", "provider", "key", "nobody")
	if err == nil || !strings.Contains(out, "nobody") || strings.Contains(out, "very-secret") {
		t.Errorf("a key for nobody: %v: %s", err, out)
	}
	if out, err = cli("", "provider", "on", "preset"); err != nil || !strings.Contains(out, "is on") {
		t.Errorf("the provider of the settings: %v: %s", err, out)
	}
	if out, err = cli("", "provider", "on", "nobody"); err == nil || !strings.Contains(out, "there are: preset") {
		t.Errorf("a provider that is not there: %v: %s", err, out)
	}
	if out, err = cli("", "config", "reset", "log_level"); err != nil || !strings.Contains(out, "Setting log_level is that of the file") {
		t.Errorf("a setting of a chat: %v: %s", err, out)
	}
	if out, err = cli("", "config", "reset", "colour"); err == nil || !strings.Contains(out, "log_level") {
		t.Errorf("a setting that is not there: %v: %s", err, out)
	}
	info, err := os.Stat(filepath.Join(w.env["ONECLAW_DATA_DIR"], database.ControlName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}

// What was set in a chat is taken back on the machine, also if nobody can write to the bot any more.
func TestASettingOfAChatIsTakenBackByACommand(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	cfg := config.Default()
	cfg.DataDir, cfg.Runtime.Now = w.env["ONECLAW_DATA_DIR"], time.Now
	stored := func(f func(settings.Values) error) {
		t.Helper()
		log := slog.New(slog.DiscardHandler)
		if err := app.WithStore(t.Context(), cfg, log, func(store *database.Store) error {
			s, _, err := app.OpenSettings(cfg, store, log)
			if err != nil {
				return err
			}
			return f(s.Values)
		}); err != nil {
			t.Fatal(err)
		}
	}
	stored(func(v settings.Values) error { return v.Set(t.Context(), settings.SettingLogLevel, "error") })
	if out, err := command(t.Context(), t, w.env, "config", "reset", settings.SettingLogLevel).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	stored(func(v settings.Values) error {
		if level, err := v.Get(t.Context(), settings.SettingLogLevel); err != nil || level != cfg.Log.Level {
			t.Errorf("the level is %q, %v", level, err)
		}
		return nil
	})
}
