package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/sandbox"
	"oneclaw/internal/service"
)

// TestABackupIsSealed seals a backup for two keys and opens it with each. What cannot be opened
// changes nothing.
func TestABackupIsSealed(t *testing.T) {
	_, database := dataDir(t, "sealed")
	dir := t.TempDir()
	var keys, files []string
	for _, name := range []string{"first", "second", "other"} {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		keys, files = append(keys, identity.Recipient().String()), append(files, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte("# "+name+"\n"+identity.String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plain, sealed, cut := filepath.Join(dir, "plain.db"), filepath.Join(dir, "sealed.age"), filepath.Join(dir, "cut.age")
	wantOK(t, "backup", plain)
	wantIn(t, wantOK(t, "backup", sealed, "--recipient", keys[0], "--recipient", keys[1]), "sealed for 2 key(s)")
	data, err := os.ReadFile(sealed)
	if err != nil || strings.Contains(string(data), "sealed") {
		t.Fatalf("the backup can be read (%v)", err)
	}
	if err := os.WriteFile(cut, data[:len(data)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want []string
		args []string
	}{
		{[]string{sealed, "--identity"}, []string{"restore", sealed}},
		{[]string{"another key", files[2]}, []string{"restore", sealed, "--identity", files[2]}},
		{[]string{cut, "cut off"}, []string{"restore", cut, "--identity", files[0]}},
		{[]string{"no secret keys"}, []string{"restore", sealed, "--identity", plain}},
		{[]string{"file with the key"}, []string{"restore", sealed, "--identity", filepath.Join(dir, "missing")}},
		{[]string{"not sealed"}, []string{"restore", plain, "--identity", files[0]}},
		{[]string{"no public key"}, []string{"backup", cut, "--force", "--recipient", "age1nothing"}},
	} {
		wantRefusal(t, c.want, c.args...)
	}
	if got := valueIn(t, database); got != "sealed" {
		t.Errorf("the database has %q now", got)
	}
	for _, file := range files[:2] {
		wantOK(t, "restore", sealed, "--identity", file)
		if got := valueIn(t, database); got != "sealed" {
			t.Errorf("restored: %q", got)
		}
	}
	t.Setenv("ONECLAW_BACKUP_RECIPIENTS", keys[1]+","+keys[2])
	wantOK(t, "backup", "--force", sealed)
	wantRefusal(t, []string{"another key"}, "restore", sealed, "--identity", files[0])
	wantOK(t, "restore", sealed, "--identity", files[2])
	secret, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	_, key, _ := strings.Cut(strings.TrimSpace(string(secret)), "\n")
	t.Setenv("ONECLAW_BACKUP_RECIPIENTS", key)
	code, _, said := oneclaw(t, "backup", "--force", sealed)
	if wantIn(t, said, "secret key of age"); code == 0 || strings.Contains(said, key) {
		t.Errorf("a secret key as the public one: %q", said)
	}
}

// TestVersionAsksOnlyWhenTold counts the requests that the command makes.
func TestVersionAsksOnlyWhenTold(t *testing.T) {
	dataDir(t, "any")
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = w.Write([]byte("v99.1.0\n"))
	}))
	defer server.Close()
	wantOK(t, "version")
	if code, _, said := oneclaw(t, "version", "--check"); code == 0 || !strings.Contains(said, "ONECLAW_RELEASE_URL") {
		t.Errorf("without an address: %q", said)
	}
	t.Setenv("ONECLAW_RELEASE_URL", server.URL)
	wantOK(t, "version")
	wantOK(t, "config")
	if requests != 0 {
		t.Errorf("%d requests that nobody asked for", requests)
	}
	wantIn(t, wantOK(t, "version", "--check"), "newest release is v99.1.0")
	t.Setenv("ONECLAW_RELEASE_URL", "")
	wantIn(t, wantOK(t, "version", "--check", "--from", server.URL), "newest release is v99.1.0")
	if requests != 2 {
		t.Errorf("%d requests", requests)
	}
}

func TestTheServiceGivesTheProgramWhatItNeeds(t *testing.T) {
	if service.StopTimeout < enough {
		t.Errorf("the service is killed after %s, and the program may need %s", service.StopTimeout, enough)
	}
	unit := wantOK(t, "service", "print")
	for line := range strings.Lines(unit) {
		if variables, ok := strings.CutPrefix(strings.TrimSpace(line), "Environment="); ok {
			environ := []string{}
			environ = append(environ, strings.Fields(strings.ReplaceAll(variables, "%", t.TempDir()))...)
			if _, err := config.Load("", environ); err != nil {
				t.Errorf("%s: %v", variables, err)
			}
		}
	}
	secrets := t.TempDir()
	give := func(name, value string) {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	give("oneclaw_OPENAI_API_KEY", "sk-of-systemd")
	give("oneclaw_ONECLAW_STORE_PASSWORD", "of systemd")
	give("other", "of another program")
	environ := []string{"ONECLAW_DATA_DIR=" + t.TempDir(), "CREDENTIALS_DIRECTORY=" + secrets}
	cfg, err := config.Load("", environ)
	if err != nil || cfg.Model.APIKey != "sk-of-systemd" || cfg.StorePassword != "of systemd" || filepath.Dir(cfg.StorePasswordFile) != secrets {
		t.Errorf("%v, %q", err, cfg.StorePasswordFile)
	}
	if cfg, err = config.Load("", append(environ, "OPENAI_API_KEY=sk-of-mine")); err != nil || cfg.Model.APIKey != "sk-of-mine" {
		t.Errorf("what is set does not count: %v", err)
	}
	give("oneclaw_TELEGRAM_TOKEN", "1:x")
	if _, err := config.Load("", environ); err == nil || !strings.Contains(err.Error(), "TELEGRAM_TOKEN") {
		t.Errorf("a secret of no setting: %v", err)
	}
}

// TestASmallMachine measures what a first start takes, with a PDF and a script, on a machine of
// 512 MiB: all processes of the program that TEST_ONECLAW_SMALL names together.
func TestASmallMachine(t *testing.T) {
	program := os.Getenv("TEST_ONECLAW_SMALL")
	if program == "" {
		t.Skip("TEST_ONECLAW_SMALL names no program")
	}
	w := newHarness(t, openai.ResponderFunc(func(ctx context.Context, r openai.Request) (openai.Reply, error) {
		switch last := r.Messages[len(r.Messages)-1]; {
		case last.Role == "user" && strings.Contains(last.Content, "script"):
			return openai.Reply{Calls: []openai.ToolCall{{ID: "call_0", Name: "js_eval", Arguments: `{"code": "[...Array(100000).keys()].map(String).sort().length"}`}}}, nil
		case last.Role == "tool" && last.ToolCallID == "call_0":
			return openai.Reply{Text: last.Content}, nil
		}
		return openai.Offline{}.Reply(ctx, r)
	}))
	w.env["ONECLAW_CACHE_DIR"] = t.TempDir() // nothing is compiled yet
	ann := w.person("Ann")
	cmd := command(t.Context(), t, w.env, "run")
	cmd.Path = program
	bot := startCommand(t, cmd)
	w.until(bot, "a poll", func(s telegram.State) bool { return s.PollCount() > 0 })
	together, ended := uint64(0), make(chan struct{})
	go func() { // it looks at least ten times a second, and at once after it has found more
		defer close(ended)
		for sandbox.WatchMemory(t.Context(), bot.cmd.Process.Pid, together) != nil {
			together += 1 << 20
		}
	}()
	wantIn(t, w.ask(bot, ann, "How many pages does it have?", samplePDF(t)), "page")
	wantIn(t, w.ask(bot, ann, "run a script", nil), "100000")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", bot.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	bot.kill(syscall.SIGTERM)
	<-ended
	own := regexp.MustCompile(`VmHWM:\s*(\d+ kB)`).FindSubmatch(status)
	t.Logf("the bot itself took at most %s, all processes together %d MiB", own[1], together>>20)
	if together > 512<<20 {
		t.Errorf("%d MiB are more than the machine has", together>>20)
	}
}

// systemd listens to what a bot tells it; told wants the next of that.
func (w *harness) systemd() (told func(want string)) {
	w.t.Helper()
	address := filepath.Join(w.t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = socket.Close() })
	w.env["NOTIFY_SOCKET"] = address
	return func(want string) {
		w.t.Helper()
		data := make([]byte, 100)
		_ = socket.SetReadDeadline(time.Now().Add(patience)) // or the read fails
		if n, _, err := socket.ReadFrom(data); err != nil || string(data[:n]) != want {
			w.t.Errorf("systemd is told %q (%v), want %q", data[:n], err, want)
		}
	}
}
