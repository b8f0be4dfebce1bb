package main

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
)

// TestSetupMakesABot goes the way of a newcomer: setup, run, the link, a first answer.
func TestSetupMakesABot(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	dir := filepath.Join(t.TempDir(), "made", "by setup")
	token, key := w.env["TELEGRAM_BOT_TOKEN"], w.env["OPENAI_API_KEY"]
	for _, name := range []string{"TELEGRAM_BOT_TOKEN", "OPENAI_API_KEY", "ONECLAW_ALLOW"} {
		delete(w.env, name)
	}
	w.env["ONECLAW_DATA_DIR"] = dir
	set := func(input string) (string, error) {
		cmd := command(t.Context(), t, w.env, "setup")
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), token) || strings.Contains(string(out), key) {
			t.Errorf("a secret is shown: %s", out)
		}
		return string(out), err
	}
	// The environment names the address of the model, so that setup does not ask for it.
	for name, c := range map[string]struct{ input, says string }{
		"nothing":         {"", "1 to 3"},
		"no platform":     {"5\n", `"5" is none of them`},
		"no token":        {"1\nhello\n", "not a token"},
		"a wrong token":   {"\n12345:wrong\n" + key + "\n", "does not know this token"},
		"no Slack token":  {"Slack\nhello\n", "xoxb-"},
		"a wrong key":     {"1\n" + token + "\nsk-wrong\n", "refuses the key"},
		"no key":          {"1\n" + token + "\n\n", "requires a key"},
		"a mistyped name": {"1\n" + token + "\n" + key + "\nemulater\n", "the nearest is emulator"},
	} {
		out, err := set(c.input)
		if err == nil {
			t.Errorf("%s: is taken", name)
		}
		wantIn(t, out, c.says)
		if _, err := os.Stat(filepath.Join(dir, config.ConfigName)); !os.IsNotExist(err) {
			t.Fatalf("%s: settings are written (%v)", name, err)
		}
	}
	w.env["ONECLAW_DATA_DIR"] = "/proc/nowhere"
	out, err := set("")
	if wantIn(t, out, "ONECLAW_DATA_DIR"); err == nil {
		t.Error("it asks what it cannot save")
	}
	w.env["ONECLAW_DATA_DIR"] = dir
	out, err = set("1\n" + token + "\n" + key + "\n\n")
	if err != nil {
		t.Fatalf("setup: %v: %s", err, out)
	}
	wantIn(t, out, "@oneclaw_bot", "ONECLAW_DATA_DIR=", " run\n")
	// What was checked is what the bot uses, without the environment of that day.
	for _, name := range []string{"OPENAI_BASE_URL", "OPENAI_MODEL"} {
		delete(w.env, name)
	}
	info, err := os.Stat(filepath.Join(dir, config.ConfigName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the settings file: %v, %v", info, err)
	}
	if info, err = os.Stat(dir); err != nil || info.Mode().Perm() != fs.FileMode(0o700) {
		t.Errorf("the data directory: %v, %v", info, err)
	}
	if out, err := set(token + "\n" + key); err == nil || !strings.Contains(out, "already") {
		t.Errorf("setup again: %v: %s", err, out)
	}

	ann := w.person("Ann")
	bot := w.run()
	_, code := offered(t, bot)
	wantIn(t, w.ask(bot, ann, "/start "+code, nil), "Welcome, Ann")
	w.ask(bot, ann, "hello", nil)
	if w.model.Count() == 0 {
		t.Error("the model was not asked")
	}
}

// TestSetupWantsANameOfAModel of a server that lists none.
func TestSetupWantsANameOfAModel(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	env := map[string]string{"ONECLAW_DATA_DIR": t.TempDir(), "TELEGRAM_BOT_TOKEN": "1:x"}
	set := func(model string) (string, error) {
		cmd := command(t.Context(), t, env, "setup")
		cmd.Stdin = strings.NewReader("another address\n" + server.URL + "/v1\n\n" + model + "\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := set("")
	if wantIn(t, out, "enter the name of one"); err == nil {
		t.Error("no name is taken")
	}
	if out, err = set("mine"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := command(t.Context(), t, env, "config").Output(); err != nil || !strings.Contains(string(out), "name: mine") {
		t.Errorf("%v: %s", err, out)
	}
}
