package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/lab"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/pdf"
)

const databaseName = database.Name

// patience bounds every wait of these tests; nothing is measured with it.
const patience = 4 * time.Minute

// promptEnd has the race detector not wait a second at the end of a program for what other
// goroutines may still do. What it has found by then fails the test.
const promptEnd = "GORACE=atexit_sleep_ms=0"

// programName is what the test binary is called to run the program itself, so that the
// tests start the very code they were built with.
const programName = "oneclaw"

// labName is the same for the program with the demo.
const labName = "oneclaw-lab"

func TestMain(m *testing.M) {
	if serve := cli.ChildMain(os.Args); serve != nil {
		if serve(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if name := os.Getenv(serverVariable); name != "" {
		os.Exit(serveTools(name))
	}
	_ = flag.Set("test.parallel", "8") // they wait more than they compute
	testscript.Main(m, map[string]func(){
		programName: func() { os.Exit(cli.Execute(rootCommand, fromTest(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		labName:     func() { os.Exit(cli.Execute(lab.Root, fromTest(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// process is a running oneclaw.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
	err  error
}

// output keeps what a process prints.
type output struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

// await returns once the process has printed a text.
func (o *output) await(t testing.TB, text string) {
	t.Helper()
	o.awaitUnless(t, text, nil)
}

// awaitUnless returns true once the process has printed a text, or false if it has ended without.
func (o *output) awaitUnless(t testing.TB, text string, ended <-chan struct{}) bool {
	t.Helper()
	deadline := time.After(patience)
	for {
		o.mu.Lock()
		there, changed := strings.Contains(o.buf.String(), text), o.changed
		o.mu.Unlock()
		if there {
			return true
		}
		select {
		case <-changed:
		case <-ended:
			return strings.Contains(o.String(), text)
		case <-deadline:
			t.Fatalf("%q was not printed: %s", text, tail(o.String(), 4000))
		}
	}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// warmCache is the folder with the compiled code of PDFium. It is compiled before the
// program needs it: with the race detector that takes longer than a call may.
func warmCache(t testing.TB) string {
	t.Helper()
	dir, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// compiled compiles once, by looking at the sample without the time limit of a call.
var compiled = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.UserCacheDir(); err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "oneclaw-test")
	family, err := pdf.New(pdf.Config{CacheDir: dir})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, family.Close()) }()
	workspace, err := filepath.Abs(filepath.Join("..", "..", "internal", "lab", "demo"))
	if err != nil {
		return "", err
	}
	_, err = family.Group().Tools[0].Run(context.Background(), toolgroups.Call{
		Name: "pdf_info", Arguments: []byte(`{"path":"sample.pdf"}`), Scope: toolgroups.Scope{Workspace: workspace},
	})
	return dir, err
})

// command prepares a run of the program with exactly this environment.
func command(ctx context.Context, t testing.TB, env map[string]string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0] = programName
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), promptEnd}
	cmd.Env = append(cmd.Env, "ONECLAW_CACHE_DIR="+warmCache(t), "ONECLAW_PREVIEWS=false", "ONECLAW_STEERING=false") // one answer for each message, and nothing else is shown
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// labCommand prepares a run of the other program.
func labCommand(ctx context.Context, t testing.TB, env map[string]string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(ctx, t, env, args...)
	cmd.Args[0] = labName
	return cmd
}

func start(t testing.TB, env map[string]string, args ...string) *process {
	t.Helper()
	return startCommand(t, command(context.Background(), t, env, args...))
}

func startCommand(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, out: newOutput(), done: make(chan struct{})}
	p.begin()
	return p
}

// begin starts the process; it is killed at the end of the test.
func (p *process) begin() {
	t := p.t
	t.Helper()
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill(syscall.SIGKILL)
		if _, report, found := strings.Cut(p.out.String(), "WARNING: DATA RACE"); found {
			t.Errorf("a data race in the program: %.4000s", report)
		}
		if t.Failed() {
			t.Logf("the program printed:\n%s", tail(p.out.String(), 8000))
		}
	})
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}

// kill sends a signal and waits for the end.
func (p *process) kill(signal syscall.Signal) {
	p.t.Helper()
	select {
	case <-p.done:
		return
	default:
	}
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		p.t.Errorf("the program did not end within %s of %s", patience, signal)
	}
}

// harness is Telegram and a model, both emulated, and the settings of a bot in them.
type harness struct {
	t        testing.TB
	telegram *telegram.Server
	model    *openai.Server
	env      map[string]string
	// ahead is how far the clocks of the platforms are.
	ahead *atomic.Int64
}

// now is the time on the platforms.
func (w *harness) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// newHarness has a model, and more of other names if they are named.
func newHarness(t testing.TB, brain openai.Responder, others ...string) *harness {
	t.Helper()
	w := &harness{t: t, ahead: new(atomic.Int64)}
	tg, err := telegram.New(telegram.Config{MaxMessages: 100_000, Now: w.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tg.Close() })
	tgURL, err := tg.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	model, modelURL := startModel(t, openai.Config{Responder: brain, Key: "sk-emulated", MaxTools: 200, Models: append([]string{openai.DefaultModel}, others...)})
	w.telegram, w.model, w.env = tg, model, map[string]string{
		"TELEGRAM_BOT_TOKEN": tg.Token(), "TELEGRAM_API_URL": tgURL,
		"OPENAI_API_KEY": "sk-emulated", "OPENAI_BASE_URL": modelURL, "OPENAI_MODEL": openai.DefaultModel,
		"ONECLAW_DATA_DIR": t.TempDir(), "ONECLAW_ALLOW": "telegram:*", "ONECLAW_LISTEN": "127.0.0.1:0",
		"ONECLAW_GOOGLE_LISTED": config.ListedAlways, // the groups of the contract
	}
	return w
}

// startModel starts a model, and returns its address.
func startModel(t testing.TB, cfg openai.Config) (model *openai.Server, address string) {
	t.Helper()
	model, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	if address, err = model.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return model, address
}

// run starts the bot and returns once it has polled.
func (w *harness) run() *process {
	w.t.Helper()
	before := 0
	w.telegram.View(func(s telegram.State) { before = s.PollCount() })
	p := start(w.t, w.env, "run")
	w.until(p, "a poll", func(s telegram.State) bool { return s.PollCount() > before })
	return p
}

// until waits for what Telegram sees; p, if not nil, must stay alive meanwhile.
func (w *harness) until(p *process, what string, cond func(telegram.State) bool) {
	w.t.Helper()
	w.untilWithin(patience, p, what, cond)
}

// untilWithin is until for what may take a busy machine longer, such as hundreds of answers.
func (w *harness) untilWithin(limit time.Duration, p *process, what string, cond func(telegram.State) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	if p != nil {
		go func() {
			select {
			case <-p.done:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	if err := w.telegram.WaitFor(ctx, cond); err != nil {
		w.t.Fatalf("no %s: %v", what, err)
	}
}

// person adds a user with a private chat; both have the returned id.
func (w *harness) person(name string) int64 {
	w.t.Helper()
	u := w.telegram.AddUser(telegram.User{FirstName: name})
	id, err := w.telegram.AddChat(telegram.ChatSpec{Kind: telegram.Private, User: u.ID})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// ask has a person write in their private chat and returns the text of the next answer.
func (w *harness) ask(p *process, who int64, text string, file *telegram.Attachment) string {
	w.t.Helper()
	before := 0
	w.telegram.View(func(s telegram.State) { before = s.CountAnswers(who) })
	w.say(who, text, file)
	w.until(p, fmt.Sprintf("answer to %q", text), func(s telegram.State) bool { return s.CountAnswers(who) > before })
	var answer string
	w.telegram.View(func(s telegram.State) { answer = s.Answers(who)[before].Text })
	return answer
}

func (w *harness) say(who int64, text string, file *telegram.Attachment) telegram.Sent {
	w.t.Helper()
	var options *telegram.SayOptions
	if file != nil {
		options = &telegram.SayOptions{Attachment: file}
	}
	sent, err := w.telegram.Say(who, who, text, options)
	if err != nil {
		w.t.Fatal(err)
	}
	return sent
}

func samplePDF(t testing.TB) *telegram.Attachment {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "internal", "lab", "demo", "sample.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	return &telegram.Attachment{Kind: telegram.KindDocument, Name: "autumn report.pdf", MIME: "application/pdf", Data: data}
}

func wantIn(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}
