package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/doctor"
	"oneclaw/internal/emulator/openai"
	"oneclaw/storage/postgres/pgtest"
)

// newServer is a PostgreSQL server that is stopped with the test.
func newServer(t *testing.T) *pgtest.Server {
	t.Helper()
	server := &pgtest.Server{}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// onServer has a harness keep its store in PostgreSQL, and returns the password, which nothing
// may print.
func (w *harness) onServer(t *testing.T) (password string) {
	t.Helper()
	u, err := url.Parse(newServer(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	password = "open sesame & go"
	u.User = url.UserPassword("postgres", password)
	w.env["ONECLAW_STORE"], w.env["ONECLAW_SECRET_KEY"] = u.String(), "the key of all who share this"
	return password
}

// TestTheStoreInPostgreSQL has a bot answer, begin anew and remember, and its commands work.
func TestTheStoreInPostgreSQL(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	password := w.onServer(t)
	ann := w.person("Ann")
	var printed strings.Builder
	for range 2 {
		bot := w.run()
		w.ask(bot, ann, "Write \"hello\" to notes.txt", nil)
		w.besides(t, &printed)
		bot.kill(syscall.SIGTERM)
		printed.WriteString(bot.out.String())
	}
	for _, args := range [][]string{{"history", w.env["ONECLAW_DATA_DIR"]}, {"config"}, {"history", fmt.Sprint("telegram:", ann)}} {
		out, err := command(t.Context(), t, w.env, args...).CombinedOutput()
		printed.Write(out)
		if ok := len(args) < 2 || strings.HasPrefix(args[1], "telegram:"); (err == nil) != ok {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
	all, _ := examined(t, w.env)
	f := all["database"]
	if f.Status != doctor.VerdictWarn {
		t.Errorf("doctor: %+v", f)
	}
	wantIn(t, f.Text, "fsync is off", "PostgreSQL 1", "a write takes ")
	wantIn(t, all["cluster"].Text, "no bot serves the database")
	wantIn(t, printed.String(), "notes.txt", "postgres://postgres:xxxxx@127.0.0.1:")
	for _, form := range []string{password, url.QueryEscape(password), url.PathEscape(password), "sesame"} {
		if strings.Contains(printed.String(), form) {
			t.Errorf("%q is printed:\n%s", form, printed.String())
		}
	}
}

// besides does beside a running bot what is done from any machine, and what is refused there.
func (w *harness) besides(t *testing.T, printed *strings.Builder) {
	t.Helper()
	host := app.Hostname()
	for _, c := range []struct {
		args []string
		want string // of a refusal, if it begins with !
	}{
		{[]string{"replicas"}, host},
		{[]string{"replicas", "--json"}, `"housekeeping"`},
		{[]string{"backup", filepath.Join(t.TempDir(), "copy")}, "as it was at one moment"},
		{[]string{"doctor"}, "1 bots: " + host},
		{[]string{"move", "--to", "bolt"}, "!bots run with this database (" + host + "): stop them first"},
		{[]string{"doctor", "--live"}, "!bots run with this database"},
	} {
		out, err := command(t.Context(), t, w.env, c.args...).CombinedOutput()
		want, refused := strings.CutPrefix(c.want, "!")
		if (err != nil) != refused && c.args[0] != "doctor" || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, %s", c.args, err, out)
		}
		printed.Write(out)
	}
}
