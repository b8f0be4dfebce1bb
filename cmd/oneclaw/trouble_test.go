package main

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage/postgres/pgtest"
)

// failing starts the program, waits for its end and returns what it says. It must be
// one line at the end, with a way out and without a trace of the program's inside.
func failing(t *testing.T, env map[string]string, args ...string) string {
	t.Helper()
	p := start(t, env, args...)
	<-p.done
	if p.err == nil {
		t.Fatalf("the program ended without an error: %s", p.out)
	}
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "oneclaw: ") || strings.Contains(p.out.String(), "goroutine ") || len(last) > 400 {
		t.Errorf("it says:\n%s", p.out)
	}
	return last
}

func with(env map[string]string, changes ...string) map[string]string {
	changed := map[string]string{}
	maps.Copy(changed, env)
	for i := 0; i < len(changes); i += 2 {
		changed[changes[i]] = changes[i+1]
	}
	return changed
}

func TestASecondStartOnTheSameDataIsRefused(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	first := w.run()
	wantIn(t, failing(t, w.env, "run"), "OneClaw already runs with "+w.env["ONECLAW_DATA_DIR"], fmt.Sprintf("(process %d)", first.cmd.Process.Pid), "ONECLAW_DATA_DIR")
}

func TestAPortInUseIsNamed(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	wantIn(t, failing(t, with(w.env, "ONECLAW_LISTEN", l.Addr().String()), "run"), l.Addr().String(), "ONECLAW_LISTEN")
}

func TestABadTokenIsNamedAndNotShown(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	line := failing(t, with(w.env, "TELEGRAM_BOT_TOKEN", "123456:wrong-secret"), "run")
	wantIn(t, line, "TELEGRAM_BOT_TOKEN")
	if strings.Contains(line, "wrong-secret") {
		t.Errorf("it shows the token: %s", line)
	}
}

func TestTwoProgramsWithOneTokenLoseNothing(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	first := w.run()
	second := start(t, with(w.env, "ONECLAW_DATA_DIR", t.TempDir()), "run")
	first.out.await(t, "409 Conflict")
	wantIn(t, w.ask(nil, ann, "hello", nil), "I am OneClaw")
	for _, p := range []*process{first, second} {
		select {
		case <-p.done:
			t.Errorf("one of the two gave up: %s", p.out)
		default:
		}
	}
}

func TestAnUnreachableModelIsASentence(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	// No test listens below the ephemeral ports, so the connection is refused whatever else runs.
	w.env["OPENAI_BASE_URL"] = "http://127.0.0.1:1/v1"
	bot := w.run()
	wantIn(t, w.ask(bot, ann, "hello", nil), "could not reach the language model")
	w.tap(bot, ann, "Details")
	_, incident, _ := strings.Cut(w.shows(bot, ann, "Incident "), "Incident ")
	bot.out.await(t, strings.TrimSpace(incident))
	wantIn(t, bot.out.String(), "connection refused")
}

// TestARefusedKeyIsAnAdministratorsToMend: administrators are told which server refuses which key, with
// the question and, where somebody else asked, in a message; others that an administrator was told.
func TestARefusedKeyIsAnAdministratorsToMend(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann, bob := w.person("Ann"), w.person("Bob")
	w.env["OPENAI_API_KEY"], w.env["ONECLAW_ADMINS"] = "sk-wrong", fmt.Sprint("telegram:", ann)
	bot := w.run()
	base, err := url.Parse(w.env["OPENAI_BASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	cause := "I can't answer right now. " + base.Host + " rejects the key: check OPENAI_API_KEY."
	if got := w.ask(bot, ann, "hello", nil); got != cause {
		t.Errorf("an administrator is told %q", got)
	}
	if got := w.ask(bot, bob, "hello", nil); got != "I can't answer right now. I've told an administrator." {
		t.Errorf("somebody else is told %q", got)
	}
	w.until(bot, "a message about it", func(s telegram.State) bool { return s.CountAnswers(ann) == 2 })
}

func TestStrangersAndAMissingAllowList(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	w.env["ONECLAW_ALLOW"] = ""
	bot := w.run()
	bot.out.await(t, "ONECLAW_ALLOW")
	wantIn(t, w.ask(bot, ann, "hello", nil), "no owner yet", "oneclaw claim")
	if w.model.Count() != 0 {
		t.Error("the model was asked for a stranger")
	}
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	address := freeAddress(t)
	w.env["ONECLAW_LISTEN"] = address
	bot := w.run()
	if out, err := command(t.Context(), t, w.env, "health").CombinedOutput(); err != nil {
		t.Errorf("health: %v: %s", err, out)
	}
	bot.kill(syscall.SIGTERM)
	if bot.err != nil {
		t.Errorf("SIGTERM ended it with %v", bot.err)
	}
	if out, err := command(t.Context(), t, w.env, "health").CombinedOutput(); err == nil {
		t.Errorf("a bot that is not there is healthy: %s", out)
	}
}

// TestAnOutageOfOnePlatformLeavesThePortReady: a proxy sends nothing to a bot that is not ready, and what
// comes from elsewhere must not wait for Telegram.
func TestAnOutageOfOnePlatformLeavesThePortReady(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	address := freeAddress(t)
	w.env["ONECLAW_LISTEN"], w.env["ONECLAW_PUBLIC_URL"] = address, hookAddress
	bot := w.run()
	p := newPoster(w, bot, address)
	bot.kill(syscall.SIGTERM)

	w.env["TELEGRAM_API_URL"] = "http://127.0.0.1:1"
	bot = start(t, w.env, "run")
	bot.out.await(t, "not connected yet")
	if isReady(t, address) {
		t.Error("nothing receives, and it is ready")
	}
	bot.kill(syscall.SIGTERM)

	token := w.env["TELEGRAM_BOT_TOKEN"]
	server, _, _ := w.withSlack(t)
	delete(w.env, "SLACK_APP_TOKEN")
	w.env["TELEGRAM_BOT_TOKEN"], w.env["SLACK_SIGNING_SECRET"], w.env["ONECLAW_ALLOW"] = token, server.SigningSecret(), "telegram:*,slack:*"
	bot = start(t, w.env, "run")
	bot.out.await(t, "not connected yet")
	bot.out.await(t, "slack starts")
	for deadline := time.Now().Add(20 * time.Second); !isReady(t, address); {
		if time.Now().After(deadline) {
			t.Fatal("Slack receives, and it is not ready")
		}
	}
	wantIn(t, get(t, "http://"+address+"/metrics"), `oneclaw_platform_ready{platform="telegram"} 0`, `oneclaw_platform_ready{platform="slack"} 1`)
	if status, text := p.request(address, p.path, `{"n":1}`, map[string]string{"Authorization": "Bearer " + p.secret}); status != http.StatusAccepted {
		t.Errorf("a webhook: %d %s", status, text)
	}
}

func isReady(t *testing.T, address string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := pgtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// TestAFullDiskIsSurvived runs the bot on a file system of a few pages. Where none can
// be mounted, a limit on the size of files stands for it.
func TestAFullDiskIsSurvived(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: there is no way to limit the size of files")
	}
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// 96 KiB hold the empty database and little more.
	script := fmt.Sprintf("trap '' XFSZ; ulimit -f 96; exec -a %s %q run", programName, self)
	cmd := exec.CommandContext(t.Context(), shell, "-c", script)
	for name, value := range w.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out := newOutput()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	w.until(nil, "a poll", func(s telegram.State) bool { return s.PollCount() > 0 })
	big := strings.Repeat("words that fill a disk ", 80)
	for range 60 {
		w.say(ann, big, nil)
	}
	out.await(t, "file too large")
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	if strings.Contains(out.String(), "goroutine ") {
		t.Errorf("a trace: %s", tail(out.String(), 4000))
	}

	// With room again, everything is answered.
	bot := w.run()
	w.until(bot, "60 answers", func(s telegram.State) bool { return s.CountAnswers(ann) >= 60 && s.PendingCount() == 0 })
	if _, err := os.Stat(filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName)); err != nil {
		t.Error(err)
	}
}
