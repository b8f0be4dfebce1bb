package mcp_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

func TestToolsOfAServerAreAGroup(t *testing.T) {
	c := discovered(t, mcp.Config{}, child(t, "fake"))
	g := c.Groups()[0]
	if g.Name != "mcp_x" || g.Source != "mcp:x" || g.DisplayName != "x (MCP): Fake Things" ||
		g.Description != "Does things for tests" || g.Role != toolgroups.RoleUser {
		t.Errorf("group %+v", g)
	}
	want := []string{
		"x_bequeath", "x_broken", "x_content", "x_dense", "x_die", "x_echo", "x_env", "x_files", "x_grow", "x_hang", "x_huge",
		"x_" + strings.Repeat("long", 20)[:53] + "_ee873ddd", "x_more", "x_nothing", "x_odd_name___abe44c15", "x_packed", "x_page", "x_shown", "x_slowly", "x_spawn", "x_structured", "x_twice",
	}
	if diff := cmp.Diff(want, naming(g)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	effects := map[string]toolgroups.Effect{}
	for _, tool := range g.Tools {
		effects[tool.Name] = tool.Effect
	}
	if effects["x_echo"] != toolgroups.ReadOnly || effects["x_grow"] != toolgroups.Changes || effects["x_env"] != toolgroups.Consequential {
		t.Errorf("effects %v", effects)
	}
	if st := c.Status()[0]; st.Connected {
		t.Error("the server was kept after the discovery")
	}
	if got := call(t, c, "x_odd_name___abe44c15", map[string]any{"text": "ü"}); got != `{"text":"ü"}` {
		t.Errorf("the odd tool answered %q", got)
	}
	registry(t, c)
}

func TestTheEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("TELEGRAM_BOT_TOKEN", "token-of-the-bot")
	t.Setenv("WANTED", "wanted-value")
	t.Setenv("PART", "part-value")
	s := child(t, "fake")
	s.Env["EXPLICIT"] = "before ${PART} after"
	s.PassEnv = []string{"WANTED", "NOT_SET_ANYWHERE"}
	got := map[string]string{}
	for pair := range strings.SplitSeq(call(t, discovered(t, mcp.Config{}, s), "x_env", nil), "\n") {
		name, value, _ := strings.Cut(pair, "=")
		got[name] = value
	}
	want := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"), modeVariable: "fake",
		"GORACE": "atexit_sleep_ms=0", "WANTED": "wanted-value", "EXPLICIT": "before part-value after",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestListsOutliveTheServer(t *testing.T) {
	accounts := keeping(t)
	first := discovered(t, mcp.Config{Accounts: accounts}, child(t, "fake"))
	want := toolgroups.EncodeTools(first.Groups()[0].Tools)

	// With the lists known nothing is started: this server would not even work.
	lookup := func(string) (string, bool) { return "", false }
	again := client(t, mcp.Config{Accounts: accounts, LookupEnv: lookup, Servers: map[string]mcp.Server{"x": child(t, "exit")}})
	again.Discover(t.Context())
	if got := toolgroups.EncodeTools(again.Groups()[0].Tools); string(got) != string(want) {
		t.Errorf("tools after a restart differ:\n%s\n%s", got, want)
	}
	fails(t, again, "x_echo", mcp.CodeUnavailable, "MCP server 'x' is unavailable: its process ended (exit status 7); next try in ")

	other := child(t, "fake")
	other.Args = []string{"other"}
	changed := client(t, mcp.Config{Accounts: accounts, Servers: map[string]mcp.Server{"x": other}})
	if names := naming(changed.Groups()[0]); len(names) != 1 || names[0] != "x_connect" {
		t.Errorf("another command has the tools %v", names)
	}
}

func TestADamagedListIsAskedForAnew(t *testing.T) {
	accounts := keeping(t)
	discovered(t, mcp.Config{Accounts: accounts}, child(t, "fake"))
	_, err := accounts.KV.Put(t.Context(), mcp.RecordPrefix+"x", []byte(`{"listed":{"tools":[`), storage.Any)
	must(t, err)
	discovered(t, mcp.Config{Accounts: accounts}, child(t, "fake"))
}

func TestAServerNeverSeenHasAToolThatConnects(t *testing.T) {
	changes := make(chan struct{}, 10)
	c := client(t, mcp.Config{
		Servers:  map[string]mcp.Server{"x": child(t, "fake")},
		OnChange: func() { changes <- struct{}{} },
	})
	if got := call(t, c, "x_connect", nil); got != "Connected to MCP server 'x': it has 22 tools. Load the group mcp_x again to see them." {
		t.Errorf("connect answered %q", got)
	}
	<-changes
	call(t, c, "x_echo", nil)
	if len(changes) != 0 {
		t.Error("a change was reported where there was none")
	}
}

func TestAChangedListIsReadAgain(t *testing.T) {
	var c *mcp.Client
	changes := make(chan []string, 10)
	c = discovered(t, mcp.Config{OnChange: func() {
		if c != nil {
			changes <- naming(c.Groups()[0])
		}
	}}, child(t, "fake"))
	call(t, c, "x_grow", nil)
	if names := strings.Join(<-changes, " "); !strings.Contains(names, "x_grown") {
		t.Errorf("after the change: %s", names)
	}
	call(t, c, "x_grown", nil)
}

// A panic while a server's tools are taken in ends that attempt alone: the next call connects again.
func TestAPanicWhileAServerIsReadEndsThatAttemptAlone(t *testing.T) {
	var l logs
	var taken atomic.Int32
	c := client(t, mcp.Config{
		Servers: map[string]mcp.Server{"x": child(t, "fake")}, RetryDelay: time.Millisecond, Logger: l.logger(),
		OnChange: func() {
			if taken.Add(1) == 1 {
				panic("broken by the test")
			}
		},
	})
	fails(t, c, "x_connect", mcp.CodeUnavailable, "MCP server 'x' is unavailable: its messages cannot be read")
	for _, fault := run(t, t.Context(), c, "x_echo", nil, t.TempDir()); fault != nil; {
		_, fault = run(t, t.Context(), c, "x_echo", nil, t.TempDir()) // its pause is a moment
	}
	if !strings.Contains(l.String(), "broken by the test") {
		t.Errorf("log:\n%s", l.String())
	}
}

func TestADeathInTheMiddleOfACall(t *testing.T) {
	var l logs
	s := child(t, "fake")
	s.Env["X"] = "secret-value-of-x"
	c := discovered(t, mcp.Config{Logger: l.logger(), RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, s)
	call(t, c, "x_echo", nil)
	fails(t, c, "x_die", mcp.CodeUnavailable, "MCP server 'x' failed in the middle of the call of 'die': its process ended (exit status 3)")
	if st := c.Status()[0]; st.Connected {
		t.Errorf("status %+v", st)
	}
	if text := l.String(); strings.Contains(text, "secret-value-of-x") || !strings.Contains(text, "is my reason") {
		t.Errorf("log:\n%s", text)
	}
}

// TestADeathIsToldThoughAChildHoldsItsErrors has a server leave a process behind that keeps its
// error output open, so that it is reaped a second after its end.
func TestADeathIsToldThoughAChildHoldsItsErrors(t *testing.T) {
	t.Parallel()
	c := discovered(t, mcp.Config{RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, child(t, "fake"))
	fails(t, c, "x_bequeath", mcp.CodeUnavailable, "MCP server 'x' failed in the middle of the call of 'bequeath': its process ended (exit status 3)")
}

func TestBackOffGrowsAndEnds(t *testing.T) {
	var now clock
	c := client(t, mcp.Config{
		Servers: map[string]mcp.Server{"x": child(t, "exit")}, RetryDelay: time.Minute, MaxRetryDelay: 10 * time.Minute, Now: now.now,
	})
	var waits []time.Duration
	for range 5 {
		fails(t, c, "x_connect", mcp.CodeUnavailable, "'x'", "exit status 7", "next try in")
		st := c.Status()[0]
		fails(t, c, "x_connect", mcp.CodeUnavailable, "exit status 7") // and does not try before
		if again := c.Status()[0]; again.NextRetry != st.NextRetry {
			t.Errorf("tried before its time: %s, then %s", st.NextRetry, again.NextRetry)
		}
		waits = append(waits, st.NextRetry.Sub(now.now()))
		now.pass(waits[len(waits)-1])
	}
	if first, last := waits[0], waits[4]; first < time.Minute || last < 5*time.Minute || slices.Max(waits) > 10*time.Minute {
		t.Errorf("waits of %s: they do not grow, or beyond the limit", waits)
	}
}

func TestUnavailableIsSaidAtOnce(t *testing.T) {
	c := client(t, mcp.Config{Servers: map[string]mcp.Server{
		"x": {Command: "/no/such/program"}, "y": child(t, "fake"),
	}, RetryDelay: time.Hour, MaxRetryDelay: time.Hour})
	fails(t, c, "x_connect", mcp.CodeUnavailable, "no such file or directory", "next try in 1h0m0s")
	fails(t, c, "x_connect", mcp.CodeUnavailable, "no such file or directory", "next try in")
	call(t, c, "y_connect", nil) // The others know nothing of it.
	if names := registry(t, c).GroupNames(); strings.Join(names, " ") != "mcp_x mcp_y" {
		t.Errorf("groups %v", names)
	}
}

func TestAServerThatNeverAnswersDelaysNobody(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"deaf", "mute"} {
		t.Run(mode, func(t *testing.T) {
			s := child(t, mode)
			s.StartTimeout = 500 * time.Millisecond // a busy machine takes a while until the process is there
			c := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": s, "y": child(t, "fake")}, RetryDelay: time.Hour, MaxRetryDelay: time.Hour})
			done := make(chan struct{})
			go func() {
				defer close(done)
				fails(t, c, "x_connect", mcp.CodeUnavailable, "it was not ready within 500ms")
			}()
			call(t, c, "y_connect", nil)
			<-done
		})
	}
}

func TestACallThatHangs(t *testing.T) {
	s := child(t, "fake")
	c := discovered(t, mcp.Config{RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan *toolgroups.Error)
	go func() {
		_, fault := run(t, ctx, c, "x_hang", nil, "")
		cancelled <- fault
	}()
	call(t, c, "x_echo", nil) // The server serves others meanwhile.
	cancel()
	if fault := <-cancelled; fault == nil || fault.Code != toolgroups.CodeCancelled {
		t.Errorf("the stopped call: %+v", fault)
	}

	s.Timeout = 50 * time.Millisecond
	quick := discovered(t, mcp.Config{RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, s)
	fails(t, quick, "x_hang", toolgroups.CodeTimeout, "MCP server 'x' did not answer the call of 'hang' within 50ms")
	if !quick.Status()[0].Connected {
		t.Error("one call without an answer ended the connection")
	}
	fails(t, quick, "x_hang", toolgroups.CodeTimeout)
	fails(t, quick, "x_hang", mcp.CodeUnavailable, "it left 2 calls in a row without an answer")
}

func TestIdleServersEnd(t *testing.T) {
	t.Parallel()
	c := discovered(t, mcp.Config{IdleTimeout: 10 * time.Millisecond}, child(t, "fake"))
	pid, _, _ := strings.Cut(call(t, c, "x_spawn", nil), " ")
	gone(t, pid)
	if st := c.Status()[0]; st.Connected || st.Problem != "" {
		t.Errorf("status of an idle server: %+v", st)
	}
	call(t, c, "x_echo", nil)
}

// The state of a server is that of its last use, which it says.
func TestStatusSaysWhenAServerWasAsked(t *testing.T) {
	t.Parallel()
	var passed atomic.Int64
	begin := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	c := discovered(t, mcp.Config{Now: func() time.Time { return begin.Add(time.Duration(passed.Load())) }}, child(t, "fake"))
	asked := func(want time.Duration) {
		t.Helper()
		if got := c.Status()[0].LastAsked; !got.Equal(begin.Add(want)) {
			t.Errorf("last asked at %v, want %v after %v", got, want, begin)
		}
	}
	asked(0)
	passed.Store(int64(time.Minute))
	call(t, c, "x_echo", nil)
	asked(time.Minute)
}

func TestCloseEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"fake", "stubborn"} {
		t.Run(mode, func(t *testing.T) {
			c := discovered(t, mcp.Config{}, child(t, mode))
			pids := strings.Fields(call(t, c, "x_spawn", nil))
			hung := make(chan *toolgroups.Error)
			tool := find(t, c, "x_hang")
			go func() {
				_, fault := toolgroups.Run(context.WithoutCancel(t.Context()), nil, tool,
					toolgroups.Call{Scope: toolgroups.Scope{Role: toolgroups.RoleUser}})
				hung <- fault
			}()
			call(t, c, "x_echo", nil)
			must(t, c.Close())
			for _, pid := range pids {
				gone(t, pid)
			}
			if fault := <-hung; fault == nil {
				t.Error("a call outlived the server")
			}
			if _, fault := run(t, t.Context(), c, "x_echo", nil, ""); fault == nil || fault.Code != toolgroups.CodeCancelled {
				t.Errorf("a call after the end: %+v", fault)
			}
		})
	}
}

func TestOldServers(t *testing.T) {
	accounts := keeping(t)
	c := discovered(t, mcp.Config{Accounts: accounts, RetryDelay: time.Millisecond}, child(t, "old"))
	call(t, c, "x_echo", nil)
	must(t, c.Close())
	// The next start knows what to speak.
	again := client(t, mcp.Config{Accounts: accounts, Servers: map[string]mcp.Server{"x": child(t, "old")}, RetryDelay: time.Hour, MaxRetryDelay: time.Hour})
	call(t, again, "x_echo", nil)
}

func TestOtherLinesAreNoMessages(t *testing.T) {
	call(t, discovered(t, mcp.Config{}, child(t, "chatty")), "x_echo", nil)
}
