package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/doctor"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/service"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// oneclaw runs the program in this process and returns its code and what it printed.
func oneclaw(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Execute(rootCommand, config.DefaultRuntime(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func wantOK(t testing.TB, args ...string) string {
	t.Helper()
	code, out, errs := oneclaw(t, args...)
	if code != 0 {
		t.Fatalf("oneclaw %q: code %d, %s", args, code, errs)
	}
	return out
}

// wantRefusal wants one line on standard error with all texts in it.
func wantRefusal(t testing.TB, texts []string, args ...string) {
	t.Helper()
	code, out, errs := oneclaw(t, args...)
	if code == 0 || out != "" || strings.Count(errs, "\n") != 1 {
		t.Fatalf("oneclaw %q: code %d, %q, %q; want one line of refusal", args, code, out, errs)
	}
	wantIn(t, errs, texts...)
}

// TestBackupOfARunningBotIsRestored takes a backup while the bot answers, loses what
// comes after it, and goes on from it.
func TestBackupOfARunningBotIsRestored(t *testing.T) {
	w := newHarness(t, openai.Offline{})
	dir, file := w.env["ONECLAW_DATA_DIR"], filepath.Join(t.TempDir(), "backup.db")
	t.Setenv("ONECLAW_DATA_DIR", dir)
	ann, told := w.person("Ann"), w.systemd()
	bot := w.run()
	told(service.Ready)
	w.ask(bot, ann, "before the backup", nil)

	out := wantOK(t, "backup", file)
	wantIn(t, out, file, "checked", "workspaces", "secret.key")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the backup: %v %v, want mode 0600", info.Mode(), err)
	}
	wantRefusal(t, []string{file, "--force"}, "backup", file)
	wantOK(t, "backup", "--force", file)
	wantRefusal(t, []string{"running", "stop"}, "restore", file)

	w.ask(bot, ann, "after the backup", nil)
	w.ask(bot, ann, "/model default", nil)
	wantIn(t, wantOK(t, "audit"), "ABOUT", "model", fmt.Sprint("telegram:", ann), "default")
	bot.kill(syscall.SIGTERM)
	wantIn(t, wantOK(t, "audit", "--json"), `"action":"model"`)
	told(service.Stopping)
	out = wantOK(t, "restore", file)
	wantIn(t, out, "before-restore")
	chat := fmt.Sprint("telegram:", ann)
	if history := wantOK(t, "history", chat); !strings.Contains(history, "before the backup") || strings.Contains(history, "after the backup") {
		t.Errorf("the restored conversation is\n%s", history)
	}
	kept, err := filepath.Glob(filepath.Join(dir, databaseName+".before-restore-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %q (%v)", kept, err)
	}
	bot = w.run()
	wantIn(t, w.ask(bot, ann, "and on", nil), "I cannot do that without a real model")
	bot.kill(syscall.SIGTERM)

	wantDocumented(t, filepath.Join(dir, databaseName))

	// What was kept is a whole database.
	wantOK(t, "restore", kept[0])
	wantIn(t, wantOK(t, "history", chat), "after the backup")
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left over: %q (%v)", left, err)
	}
}

// wantDocumented wants each key of a database to be among those of which the comment of
// database says what bounds them.
func wantDocumented(t *testing.T, database string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", "internal", "database", "format.go"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(bolt.Config{Path: database})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	n := 0
	for entry, err := range store.List(t.Context(), storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		family, _, below := strings.Cut(entry.Key, "/")
		if below {
			family += "/"
		}
		if !bytes.Contains(source, []byte("\n//\t"+family)) {
			t.Errorf("key %s: say in format.go what keeps it from growing for ever", entry.Key)
		}
	}
	if n < 3 {
		t.Errorf("only %d keys: the test does not see what the bot wrote", n)
	}
}

// dataDir makes a data directory with a database in which a key has a value.
func dataDir(t *testing.T, value string) (dir, database string) {
	t.Helper()
	dir = t.TempDir()
	database = filepath.Join(dir, databaseName)
	t.Setenv("ONECLAW_DATA_DIR", dir)
	cfg := config.Default()
	cfg.DataDir = dir
	store, err := app.OpenStore(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), "k", []byte(value), storage.Any); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, database
}

func valueIn(t *testing.T, path string) string {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	entry, err := store.Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return string(entry.Value)
}

func TestABackupOfAStoppedBotAndANewPlace(t *testing.T) {
	dir, database := dataDir(t, "old")
	file := filepath.Join(t.TempDir(), "b")
	wantOK(t, "backup", file)
	if got := valueIn(t, file); got != "old" {
		t.Errorf("the backup has %q", got)
	}
	wantRefusal(t, []string{"the database itself"}, "backup", "--force", database)
	wantRefusal(t, []string{"the database itself"}, "restore", database)
	wantRefusal(t, []string{"is a folder"}, "backup", dir)
	wantRefusal(t, []string{"no such file"}, "backup", filepath.Join(dir, "missing", "b"))

	t.Setenv("ONECLAW_DATA_DIR", filepath.Join(t.TempDir(), "new"))
	wantRefusal(t, []string{"no database", "ONECLAW_DATA_DIR"}, "backup", filepath.Join(dir, "c"))
	if out := wantOK(t, "restore", file); strings.Contains(out, "before-restore") {
		t.Errorf("nothing was there to be kept: %s", out)
	}
	if got := valueIn(t, filepath.Join(os.Getenv("ONECLAW_DATA_DIR"), databaseName)); got != "old" {
		t.Errorf("restored %q", got)
	}
}

func TestRestoreTakesOnlyWholeBackups(t *testing.T) {
	_, database := dataDir(t, "present")
	good, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(t.TempDir(), "newer")
	wantOK(t, "backup", newer)
	store, err := bolt.Open(bolt.Config{Path: newer})
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, "format", map[string]int{"version": 99})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	future, err := os.ReadFile(newer)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	for i := 3 * os.Getpagesize(); i < len(flipped); i += 7 {
		flipped[i] ^= 0xff
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty": {nil, "empty"}, "text": {bytes.Repeat([]byte("text "), 4000), "no whole backup"},
		"cut off": {good[:len(good)/2], "no whole backup"}, "damaged": {flipped, "no whole backup"},
		"newer": {future, "newer oneclaw"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "backup")
			if err := os.WriteFile(file, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			wantRefusal(t, []string{file, c.want}, "restore", file)
		})
	}
	wantRefusal(t, []string{"there is no file"}, "restore", filepath.Join(t.TempDir(), "missing"))
	if got := valueIn(t, database); got != "present" {
		t.Errorf("the database has %q now", got)
	}
}

func TestADamagedDatabaseNamesItsMend(t *testing.T) {
	_, database := dataDir(t, "good")
	file := filepath.Join(t.TempDir(), "backup")
	wantOK(t, "backup", file)
	good, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(database, good[:len(good)-3*os.Getpagesize()], 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, []string{database, "oneclaw restore FILE"}, "history", "telegram:1")
	wantRefusal(t, []string{database, "oneclaw restore FILE"}, "backup", file+"2")
	wantIn(t, wantOK(t, "restore", file), "before-restore")
	if got := valueIn(t, database); got != "good" {
		t.Errorf("restored %q", got)
	}
}

// What was written before the first release stays as it is.
func TestAFormatFromBeforeTheFirstReleaseIsRefused(t *testing.T) {
	_, path := dataDir(t, "kept")
	store, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, "format", map[string]int{"version": database.LowestFormat - 1})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(t.TempDir(), "old")
	wantOK(t, "backup", old)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"history", "telegram:1"}, {"restore", old}} {
		wantRefusal(t, []string{fmt.Sprintf("format %d, this oneclaw reads %d and above", database.LowestFormat-1, database.LowestFormat), "the program of commit"}, args...)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refusal has changed the database (%v)", err)
	}
}

func TestANewerFormatIsRefused(t *testing.T) {
	_, database := dataDir(t, "x")
	store, err := bolt.Open(bolt.Config{Path: database})
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, "format", map[string]int{"version": 99})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, []string{"newer oneclaw", "format 99", "update oneclaw"}, "history", "telegram:1")
}

// A database that was emptied is not taken for a new one: the owner would be gone, and the
// bot there for whoever claims it.
//
// An emptied database is not taken for a new one.
func TestAnEmptiedDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	bot := w.run()
	w.ask(bot, w.person("Ann"), "Write \"hello\" to notes.txt", nil)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if out, err := command(t.Context(), t, w.env, "backup", backup).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	bot.kill(syscall.SIGTERM)
	database := filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName)
	if err := os.Truncate(database, 0); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run"}, {"claim"}, {"history", "telegram:1"}, {"backup", filepath.Join(t.TempDir(), "another.db")}} {
		wantIn(t, failing(t, w.env, args...), databaseName+" has 0 bytes", "oneclaw restore FILE", "remove the empty file")
	}
	all, _ := examined(t, w.env)
	if f := all["database"]; f.Status != doctor.VerdictFail || !strings.Contains(f.Text, "has 0 bytes") {
		t.Errorf("doctor: %+v", f)
	}
	if info, err := os.Stat(database); err != nil || info.Size() != 0 {
		t.Errorf("the empty database was changed: %v, %v", info, err)
	}
	// One that is gone, as after a wrong mount, is not made anew either.
	if err := os.Remove(database); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run"}, {"claim"}} {
		wantIn(t, failing(t, w.env, args...), "there is no database", databaseName, "wrong mount", "oneclaw restore FILE")
	}
	if _, err := os.Stat(database); err == nil {
		t.Error("a new database was made")
	}
	out, err := command(t.Context(), t, w.env, "restore", backup).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "is open again") {
		t.Fatalf("%v: %s", err, out)
	}
	w.ask(w.run(), w.person("Bob"), "hello", nil)
}
