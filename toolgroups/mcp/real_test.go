package mcp_test

import (
	"bufio"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oneclaw/storage/postgres/pgtest"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// installed returns the script of a server that testdata/servers/install has installed.
func installed(t *testing.T, name string) (node, script string) {
	t.Helper()
	node, dir := installation(t)
	script = filepath.Join(dir, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	require(t, script)
	return node, script
}

// installation returns the folder of testdata/servers/install, and the program that runs its scripts.
func installation(t *testing.T) (node, dir string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	must(t, err)
	dir = cmp.Or(os.Getenv("TEST_ONECLAW_MCP_SERVERS"), filepath.Join(cache, "oneclaw", "mcp-servers"))
	if node, err = exec.LookPath("node"); err != nil {
		require(t, "node")
	}
	return node, dir
}

// require skips a test without a file of the installation, unless TEST_ONECLAW_TYPES is "must".
func require(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); err == nil {
		return
	}
	if os.Getenv("TEST_ONECLAW_TYPES") == "must" {
		t.Fatalf("%s is not installed: run testdata/servers/install", file)
	}
	t.Skipf("%s is not installed: run testdata/servers/install", file)
}

func TestRealServerEverything(t *testing.T) {
	t.Setenv("TELEGRAM_BOT_TOKEN", "token-of-the-bot")
	node, script := installed(t, "server-everything")
	c := discovered(t, mcp.Config{}, mcp.Server{Command: node, Args: []string{script}})
	checkEverything(t, c)
	if text := call(t, c, "x_get-env", nil); strings.Contains(text, "token-of-the-bot") || !strings.Contains(text, "PATH") {
		t.Errorf("environment: %s", text)
	}
}

func checkEverything(t *testing.T, c *mcp.Client) {
	t.Helper()
	registry(t, c)
	t.Logf("tools: %v", naming(c.Groups()[0]))
	if text := call(t, c, "x_echo", map[string]any{"message": "hello there"}); !strings.Contains(text, "hello there") {
		t.Errorf("echo: %q", text)
	}
	if text := call(t, c, "x_get-sum", map[string]any{"a": 2, "b": "40"}); !strings.Contains(text, "42") {
		t.Errorf("sum: %q", text)
	}
	ws := t.TempDir()
	res, fault := run(t, t.Context(), c, "x_get-tiny-image", nil, ws)
	if fault != nil || len(res.Files) != 1 || filepath.Ext(res.Files[0].Path) != ".png" {
		t.Fatalf("picture: %+v, %v", res, fault)
	}
	if info, err := os.Stat(filepath.Join(ws, res.Files[0].Path)); err != nil || info.Size() == 0 {
		t.Errorf("picture: %v, %v", info, err)
	}
	if text := call(t, c, "x_get-structured-content", map[string]any{"location": "Chicago"}); !strings.Contains(text, "temperature") {
		t.Errorf("structured: %q", text)
	}
}

func TestRealServerEverythingOverHTTP(t *testing.T) {
	t.Parallel()
	node, script := installed(t, "server-everything")
	free, err := pgtest.FreePort()
	must(t, err)
	stop := serveEverything(t, node, script, strconv.Itoa(free))
	c := discovered(t, mcp.Config{}, mcp.Server{URL: "http://127.0.0.1:" + strconv.Itoa(free) + "/mcp"})
	checkEverything(t, c)
	stop()
	serveEverything(t, node, script, strconv.Itoa(free)) // knows no session
	checkEverything(t, c)
	must(t, c.Close())
}

// serveEverything starts the server over HTTP.
func serveEverything(t *testing.T, node, script, port string) (stop func()) {
	t.Helper()
	return serveProgram(t, []string{"PORT=" + port}, node, script, "streamableHttp")
}

// serveProgram starts a program that serves over HTTP, and says so.
func serveProgram(t *testing.T, env []string, command string, args ...string) (stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	ready := make(chan bool)
	go func() {
		defer close(ready)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "listening") {
				ready <- true
			}
		}
	}()
	if !<-ready {
		t.Fatal("the server did not start")
	}
	return stop
}

func TestRealServerFilesystem(t *testing.T) {
	t.Parallel()
	node, script := installed(t, "server-filesystem")
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "note.txt"), []byte("from the disk"), 0o600))
	c := discovered(t, mcp.Config{}, mcp.Server{Command: node, Args: []string{script, dir}, Exclude: []string{"write_*", "edit_*", "move_*"}})
	registry(t, c)
	names := strings.Join(naming(c.Groups()[0]), " ")
	if strings.Contains(names, "write_file") {
		t.Errorf("an excluded tool is offered: %s", names)
	}
	if tool := find(t, c, "x_read_text_file"); tool.Effect != toolgroups.ReadOnly {
		t.Errorf("read_text_file has the effect %v", tool.Effect)
	}
	path := filepath.Join(dir, "note.txt")
	if text := call(t, c, "x_read_text_file", map[string]any{"path": path}); !strings.Contains(text, "from the disk") {
		t.Errorf("read: %q", text)
	}
	_, fault := run(t, t.Context(), c, "x_read_text_file", map[string]any{"path": "/etc/passwd"}, "")
	if fault == nil || fault.Code != toolgroups.CodeExecution || !strings.Contains(fault.Message, "denied") {
		t.Errorf("a file outside: %+v", fault)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, fault = run(t, ctx, c, "x_read_text_file", map[string]any{}, ""); fault == nil || fault.Code != toolgroups.CodeInvalid {
		t.Errorf("without a path: %+v", fault)
	}
}

// A file of 20 kB is said once and whole, and a picture is a file.
func TestRealServerFilesystemSaysEachFileOnce(t *testing.T) {
	t.Parallel()
	node, script := installed(t, "server-filesystem")
	dir := t.TempDir()
	text := strings.Repeat("a line of the file\n", 1050)
	must(t, os.WriteFile(filepath.Join(dir, "long.txt"), []byte(text), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "shot.png"), []byte(png+strings.Repeat("x", 20_000)), 0o600))
	c := discovered(t, mcp.Config{}, mcp.Server{Command: node, Args: []string{script, dir}})
	if got := call(t, c, "x_read_text_file", map[string]any{"path": filepath.Join(dir, "long.txt")}); strings.TrimSpace(got) != strings.TrimSpace(text) {
		t.Errorf("%d bytes of %d: %.200s", len(got), len(text), got)
	}
	res, fault := run(t, t.Context(), c, "x_read_media_file", map[string]any{"path": filepath.Join(dir, "shot.png")}, t.TempDir())
	if fault != nil || len(res.Files) != 1 || len(res.Text) > 200 {
		t.Errorf("%v, %v, %.300s", res.Files, fault, res.Text)
	}
}
