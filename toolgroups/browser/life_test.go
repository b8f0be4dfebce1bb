package browser_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/browser"
)

// children are the processes that this one has started and that run, with the
// beginning of their environment.
func children(t testing.TB) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Skip("there is no /proc here")
	}
	found := map[int]string{}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// pid (name) state ppid …
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "environ"))
		found[pid] = string(environment)
	}
	return found
}

// started are the children that were not there before.
func started(t testing.TB, before map[int]string) map[int]string {
	t.Helper()
	now := children(t)
	maps.DeleteFunc(now, func(pid int, _ string) bool { _, old := before[pid]; return old })
	return now
}

func TestChromiumIsStartedOnceAndSeesNoSecrets(t *testing.T) {
	t.Setenv("ONECLAW_TEST_TOKEN", "xoxb-secret")
	d, before := newDesk(t), children(t)
	d.tool = newTool(t, browser.Config{AllowPrivate: loopback()})
	if n := len(started(t, before)); n != 0 {
		t.Fatalf("%d processes before the first call", n)
	}
	address := d.page("/", "<p>x</p>")
	for range 2 {
		d.extract(t, address, nil)
		running := started(t, before)
		if len(running) != 1 {
			t.Fatalf("%d processes", len(running))
		}
		for _, environment := range running {
			if strings.Contains(environment, "xoxb-secret") || !strings.Contains(environment, "HOME=") {
				t.Errorf("environment is %q", environment)
			}
		}
	}
}

// leaveProfile makes a folder as Chromium does, with the lock that names its host and process.
func leaveProfile(t *testing.T, name, lock string) (dir string) {
	t.Helper()
	dir = filepath.Join(os.TempDir(), "chromedp-runner"+name)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "Cookies"), nil, 0o600), os.Symlink(lock, filepath.Join(dir, "SingletonLock"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// leaveHome makes a folder as HOME was for the browser of a killed bot.
func leaveHome(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(os.TempDir(), "oneclaw-browser-left")
	if err := os.MkdirAll(filepath.Join(dir, ".cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// locks returns the name of this host, and the lock of a browser whose process has ended.
func locks(t *testing.T) (host, ended string) {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), "true")
	if err := process.Run(); err != nil {
		t.Fatal(err)
	}
	return host, fmt.Sprint(host, "-", process.Process.Pid)
}

// The folders have the cookies and pages of a person. They are deleted at the start, and when a user browses.
func TestWhatTheBrowserOfAKilledBotKeptIsDeleted(t *testing.T) {
	for name, browses := range map[string]bool{"at the start": false, "before a page is opened": true} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			var d *harness
			if browses {
				d = newDesk(t)
				d.tool = newTool(t, browser.Config{AllowPrivate: loopback()})
			}
			host, ended := locks(t)
			want := map[string]bool{
				leaveProfile(t, "-left", ended):                              false,
				leaveProfile(t, "-used", fmt.Sprint(host, "-", os.Getpid())): true,
				leaveProfile(t, "-elsewhere", "x"+ended):                     true,
				leaveHome(t):                                                 false,
			}
			if browses {
				d.extract(t, d.page("/", "<p>x</p>"), nil)
			} else {
				newTool(t, browser.Config{})
			}
			for dir, stays := range want {
				if _, err := os.Stat(dir); (err == nil) != stays {
					t.Errorf("%s: %v", filepath.Base(dir), err)
				}
			}
		})
	}
}

// Another bot on this machine starts, or opens a page.
func TestTheFoldersOfABrowserThatRunsAreKept(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := newDesk(t)
	b, err := browser.New(browser.Config{AllowPrivate: loopback()})
	if err != nil {
		t.Fatal(err)
	}
	if d.tool, err = b.Tool(); err != nil {
		t.Fatal(err)
	}
	d.tool.Timeout = patience
	address := d.page("/", "<p>x</p>")
	d.extract(t, address, nil)
	folders := func() (found []string) {
		for _, pattern := range []string{"chromedp-runner*/SingletonLock", "oneclaw-browser-*"} {
			names, err := filepath.Glob(filepath.Join(os.TempDir(), pattern))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, names...)
		}
		return found
	}
	before := folders()
	if len(before) != 2 {
		t.Fatalf("a browser keeps %q", before)
	}
	newTool(t, browser.Config{})
	if after := folders(); !slices.Equal(after, before) {
		t.Errorf("after the start of another: %q, want %q", after, before)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if left := folders(); len(left) > 0 {
		t.Errorf("a browser that was closed leaves %q", left)
	}
}

func TestChromiumThatDiedIsStartedAgain(t *testing.T) {
	d, before := newDesk(t), children(t)
	d.tool = newTool(t, browser.Config{AllowPrivate: loopback()})
	address := d.page("/", "<p>x</p>")
	d.extract(t, address, nil)
	for pid := range started(t, before) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	// The first call may still meet the dying process.
	if _, fault := d.run(t, args{"url": address, "mode": "extract", "wait_seconds": 0}); fault != nil && !strings.Contains(fault.Message, "Try again") {
		t.Errorf("%+v", fault)
	}
	if got := d.extract(t, address, nil); got != "x" {
		t.Errorf("page is %q", got)
	}
}

// lines is a log whose lines come out of a channel.
type lines chan string

// Write implements [io.Writer].
func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func TestIdleChromiumIsEnded(t *testing.T) {
	d, before, log := newDesk(t), children(t), make(lines, 10)
	d.tool = newTool(t, browser.Config{
		AllowPrivate: loopback(), IdleTimeout: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	address := d.page("/", "<p>x</p>")
	for range 2 {
		d.extract(t, address, nil)
		if line := <-log; !strings.Contains(line, "idle browser ended") {
			t.Errorf("logged %s", line)
		}
		if n := len(started(t, before)); n != 0 {
			t.Errorf("%d processes", n)
		}
	}
}

func TestCloseEndsCallsThatRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b, err := browser.New(browser.Config{AllowPrivate: loopback()})
	if err != nil {
		t.Fatal(err)
	}
	if d.tool, err = b.Tool(); err != nil {
		t.Fatal(err)
	}
	d.tool.Timeout = patience
	asked := make(chan struct{})
	d.mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	result := make(chan *toolgroups.Error, 1)
	go func() {
		_, fault := d.run(t, args{"url": d.site + "/slow", "mode": "extract"})
		result <- fault
	}()
	select {
	case <-asked:
	case fault := <-result:
		t.Fatalf("the call ended before Close: %+v", fault)
	}
	closed := make(chan error)
	go func() { closed <- b.Close() }()
	if fault := <-result; fault == nil || fault.Code != browser.CodeExtraction {
		t.Errorf("the call ended with %+v", fault)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, fault := d.run(t, args{"url": d.site, "mode": "extract"}); fault == nil || !strings.Contains(fault.Message, "ended") {
		t.Errorf("after Close: %+v", fault)
	}
}

func TestStoppedCallsEndAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.extract(t, d.page("/", "<p>x</p>"), nil)
	d.mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	d.tool.Timeout = 200 * time.Millisecond
	_, fault := d.run(t, args{"url": d.site + "/slow", "mode": "extract"})
	if fault == nil || fault.Code != toolgroups.CodeTimeout {
		t.Errorf("%+v", fault)
	}
}

// hungry is a page that is not there before it has taken a gibibyte and a half of memory, however
// busy the machine is.
const hungry = `<p>hungry</p><script>
const kept = [];
while (kept.length < 96) kept.push(new Uint8Array(16 << 20).fill(1));
</script>`

// A page that takes all the memory that it can get is closed with an error that says so,
// nothing of the browser is left, and the next page is shown.
//
// A page cannot take the memory of the host.
func TestAPageCannotTakeTheMemoryOfTheHost(t *testing.T) {
	d, before := newDesk(t), children(t)
	d.tool = newTool(t, browser.Config{AllowPrivate: loopback(), MaxMemory: 700 << 20})
	evil, good := d.page("/evil", hungry), d.page("/good", "<p>good</p>")
	for range 2 {
		_, fault := d.run(t, args{"url": evil, "mode": "extract", "wait_seconds": 20})
		if fault == nil || fault.Code != browser.CodeExtraction || !strings.Contains(fault.Message, "more than 700 MiB of memory") {
			t.Fatalf("%+v", fault)
		}
		if n := len(started(t, before)); n != 0 {
			t.Errorf("%d processes are left", n)
		}
		if got := d.extract(t, good, nil); got != "good" {
			t.Errorf("page is %q", got)
		}
		maps.Copy(before, started(t, before))
	}
}
