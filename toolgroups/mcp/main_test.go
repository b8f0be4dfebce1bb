package mcp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/internal/redact"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// modeVariable tells the test binary to be an MCP server.
const modeVariable = "ONECLAW_TEST_MCP_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode == "conformance" {
		if err := conform(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	} else if mode != "" {
		os.Exit(serveStdio(mode))
	}
	_ = flag.Set("test.parallel", "8") // they wait more than they compute
	goleak.VerifyTestMain(m)
}

// child is the test binary as a server.
func child(t testing.TB, mode string) mcp.Server {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	return mcp.Server{
		Command: self,
		// The race detector would have every child wait a second before it ends.
		Env: map[string]redact.Secret{modeVariable: redact.Secret(mode), "GORACE": "atexit_sleep_ms=0"},
	}
}

// patience bounds what has to happen, also on a busy machine.
const patience = 2 * time.Minute

// client makes a family that is closed with the test.
func client(t testing.TB, cfg mcp.Config) *mcp.Client {
	t.Helper()
	for name, s := range cfg.Servers {
		s.Timeout, s.StartTimeout = cmp.Or(s.Timeout, patience), cmp.Or(s.StartTimeout, patience)
		cfg.Servers[name] = s
	}
	c, err := mcp.New(cfg)
	must(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// discovered is a family of one server x whose list is known.
func discovered(t testing.TB, cfg mcp.Config, s mcp.Server) *mcp.Client {
	t.Helper()
	cfg.Servers = map[string]mcp.Server{"x": s}
	c := client(t, cfg)
	c.Discover(t.Context())
	if st := c.Status()[0]; st.Tools == 0 {
		t.Fatalf("nothing was discovered: %+v", st)
	}
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// find returns a tool of the groups as they are now.
func find(t testing.TB, c *mcp.Client, name string) toolgroups.Tool {
	t.Helper()
	var have []string
	for _, g := range c.Groups() {
		for _, tool := range g.Tools {
			if tool.Name == name {
				return tool
			}
			have = append(have, tool.Name)
		}
	}
	t.Fatalf("no tool %q among %v", name, have)
	return toolgroups.Tool{}
}

// run runs a tool as the agent does.
func run(t testing.TB, ctx context.Context, c *mcp.Client, name string, args any, ws string) (toolgroups.Result, *toolgroups.Error) {
	t.Helper()
	data, err := json.Marshal(args)
	must(t, err)
	return toolgroups.Run(ctx, nil, find(t, c, name), toolgroups.Call{
		ID: "1", Name: name, Arguments: data,
		Scope: toolgroups.Scope{Role: toolgroups.RoleAdmin, Workspace: ws},
	})
}

// call runs a tool that has to work.
func call(t testing.TB, c *mcp.Client, name string, args any) string {
	t.Helper()
	res, fault := run(t, t.Context(), c, name, args, t.TempDir())
	if fault != nil {
		t.Fatalf("%s: %s: %s", name, fault.Code, fault.Message)
	}
	return res.Text
}

// fails runs a tool that must not work, and compares what the model is told.
func fails(t testing.TB, c *mcp.Client, name, code string, parts ...string) {
	t.Helper()
	res, fault := run(t, t.Context(), c, name, nil, t.TempDir())
	if fault == nil {
		t.Fatalf("%s worked: %q", name, res.Text)
	}
	if fault.Code != code {
		t.Errorf("%s: code %s, want %s (%s)", name, fault.Code, code, fault.Message)
	}
	for _, part := range parts {
		if !strings.Contains(fault.Message, part) {
			t.Errorf("%s: %q does not say %q", name, fault.Message, part)
		}
	}
}

func naming(g toolgroups.Group) []string {
	var names []string
	for _, tool := range g.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// registry checks that the groups can stand beside each other.
func registry(t testing.TB, c *mcp.Client) *toolgroups.Registry {
	t.Helper()
	r, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: c.Groups()})
	must(t, err)
	return r
}

// logs collects what is logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// clock is a clock that stands still until it is moved.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(0, c.ahead.Load()) }

func (c *clock) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// gone waits until a process has ended, but not for ever.
func gone(t testing.TB, pid string) {
	t.Helper()
	id, err := strconv.Atoi(pid)
	must(t, err)
	const pidfdOpen = 434 // on every architecture; a descriptor that can be read when the process has ended
	fd, _, errno := syscall.Syscall(pidfdOpen, uintptr(id), syscall.O_NONBLOCK, 0)
	if errors.Is(errno, syscall.ESRCH) {
		return
	}
	if errno != 0 {
		t.Fatalf("watch process %s: %v", pid, errno)
	}
	process := os.NewFile(fd, "process "+pid)
	defer func() { must(t, process.Close()) }()
	must(t, process.SetReadDeadline(time.Now().Add(patience)))
	conn, err := process.SyscallConn()
	must(t, err)
	asked := false
	if err := conn.Read(func(uintptr) bool { first := !asked; asked = true; return !first }); err != nil {
		t.Fatalf("process %s lives on: %v", pid, err)
	}
}
