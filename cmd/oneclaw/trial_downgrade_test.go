package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// refused runs a command of the program that has to end with one line.
func (w *harness) refused(env map[string]string, args ...string) string {
	w.t.Helper()
	out, err := command(w.t.Context(), w.t, env, args...).CombinedOutput()
	if err == nil || bytes.Count(out, []byte("\n")) != 1 {
		w.t.Errorf("%q: %v, %q; want one line of refusal", args, err, out)
	}
	return string(out)
}

// TestTrialDowngradeIsRefusedAndComesBack runs a newer program on the data of this one,
// and then this one again. It refuses the newer format with what to do, and changes and
// serves nothing; the backup that the newer program has made brings it back.
func TestTrialDowngradeIsRefusedAndComesBack(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	dir := w.env["ONECLAW_DATA_DIR"]
	path := filepath.Join(dir, databaseName)
	older := w.env
	newer := maps.Clone(older)
	newer[newerVariable] = "1"
	say := func(env map[string]string, text string) {
		t.Helper()
		w.env = env
		bot := w.run()
		w.ask(bot, ann, text, nil)
		bot.kill(syscall.SIGTERM)
	}
	backups := func() []string {
		t.Helper()
		all, err := filepath.Glob(path + ".before-update-*")
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	say(older, "words of the older one")
	if n := len(backups()); n != 0 {
		t.Errorf("%d backups before an update", n)
	}
	say(newer, "words of the newer one")
	kept := backups()
	if len(kept) != 1 {
		t.Fatalf("kept %q, want one backup", kept)
	}

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	polls := func() (n int) {
		w.telegram.View(func(s telegram.State) { n = s.PollCount() })
		return n
	}
	asked := polls()
	copied := filepath.Join(t.TempDir(), "newer.db")
	if out, err := command(t.Context(), t, newer, "backup", copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	chat := fmt.Sprint("telegram:", ann)
	for _, args := range [][]string{{"run"}, {"claim"}, {"history", chat}, {"restore", copied}} {
		wantIn(t, w.refused(older, args...), fmt.Sprintf("newer oneclaw (format %d, this one knows %d)", database.NewestFormat(app.Migrations(config.Config{}))+1, database.NewestFormat(app.Migrations(config.Config{}))), "update oneclaw")
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refusal has changed the database (%v)", err)
	}
	if n := polls(); n != asked {
		t.Errorf("Telegram was polled %d times by a program that refuses its data", n-asked)
	}

	if out, err := command(t.Context(), t, older, "restore", kept[0]).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	say(older, "words after the way back")
	history, err := command(t.Context(), t, older, "history", chat).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	wantIn(t, string(history), "words of the older one", "words after the way back")
	if strings.Contains(string(history), "words of the newer one") {
		t.Errorf("the backup of before has what came after: %s", history)
	}
	say(newer, "words of the update once more")
	if again := backups(); len(again) != 2 || !slices.Contains(again, kept[0]) {
		t.Errorf("backups %q, want the first one and another", again)
	}
}
