package jstools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/jstools"
)

// TestMain is also the process in which the scripts of the tests run.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == sandbox.ScriptArgument {
		if err := sandbox.ServeScript(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// house is the tools of a folder with the registry that a bot would make of them.
type house struct {
	*jstools.Tools
	dir       string
	workspace string
	changes   atomic.Int32
	// asks, if not nil, decides on the addresses that scripts fetch.
	asks func(address string, others bool) error
}

func newHouse(t testing.TB, change ...func(*jstools.Config)) *house {
	t.Helper()
	engine, err := sandbox.NewEngine(sandbox.EngineConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{dir: filepath.Join(t.TempDir(), "tools"), workspace: t.TempDir()}
	cfg := jstools.Config{
		Dir: h.dir, Engine: engine, Location: func() *time.Location { return time.UTC },
		Now:           func() time.Time { return time.Date(2026, 11, 21, 9, 5, 7, 0, time.UTC) },
		OnChange:      func() { h.changes.Add(1) },
		ReservedNames: func() []string { return []string{"exec", "pdf", "pdf_info"} },
		AllowPrivate:  []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Logger:        slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	if h.Tools, err = jstools.New(cfg); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) registry(t testing.TB) *toolgroups.Registry {
	t.Helper()
	eval, err := h.EvalTool()
	if err != nil {
		t.Fatal(err)
	}
	group, err := h.ManagementGroup()
	if err != nil {
		t.Fatal(err)
	}
	core, groups := h.Tools.Tools()
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{
		Core: append([]toolgroups.Tool{eval}, core...), Groups: append([]toolgroups.Group{group}, groups...),
	})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// call runs a tool as the agent does, on behalf of an administrator.
func (h *house) call(t testing.TB, name string, args any) (string, *toolgroups.Error) {
	t.Helper()
	return h.callAs(t, toolgroups.Scope{
		User: "telegram:1", Owner: "telegram:1", Role: toolgroups.RoleAdmin, Workspace: h.workspace,
	}, name, args)
}

func (h *house) callAs(t testing.TB, scope toolgroups.Scope, name string, args any) (string, *toolgroups.Error) {
	t.Helper()
	tool, ok := h.registry(t).Tool(name)
	if !ok {
		return "", toolgroups.Errorf(toolgroups.CodeNotFound, "no tool %s", name)
	}
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if h.asks != nil {
		ctx = toolgroups.WithAddressCheck(ctx, h.asks)
	}
	res, fault := toolgroups.Run(ctx, nil, tool, toolgroups.Call{Name: name, Arguments: data, Scope: scope})
	return res.Text, fault
}

// must runs a tool that has to work.
func (h *house) must(t testing.TB, name string, args any) string {
	t.Helper()
	text, fault := h.call(t, name, args)
	if fault != nil {
		t.Fatalf("%s: %s: %s", name, fault.Code, fault.Message)
	}
	return text
}

// js evaluates code.
func (h *house) js(t testing.TB, code string) string {
	t.Helper()
	return h.must(t, "js_eval", args{"code": code, "timeout_seconds": patience})
}

// asTool evaluates an expression in a tool of a user, in which U is the address.
func (h *house) asTool(t testing.TB, url, expression string) string {
	t.Helper()
	h.put(t, map[string]string{
		"script.json": `{"name":"script","description":"d","timeout_s":120}`,
		"script.js":   fmt.Sprintf("const U = %q; async function execute() { return %s }", url, expression),
	})
	return h.must(t, "script", args{})
}

// patience is how many seconds a script may take that should end: other programs may keep this
// machine busy.
const patience = 120

type args map[string]any

// put writes files of the folder, as a person would.
func (h *house) put(t testing.TB, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Reload(); err != nil {
		t.Fatal(err)
	}
}

// groups shows the groups with their tools.
func (h *house) groups() string {
	core, groups := h.Tools.Tools()
	var out []string
	if len(core) > 0 {
		out = append(out, "core("+strings.Join(toolgroups.Names(core), " ")+")")
	}
	for _, g := range groups {
		out = append(out, g.Name+"("+strings.Join(toolgroups.Names(g.Tools), " ")+")")
	}
	return strings.Join(out, " ")
}

func (h *house) mistakes() string {
	var out []string
	for _, err := range h.Errors() {
		out = append(out, err.Error())
	}
	return strings.Join(out, "\n")
}

// files lists a folder.
func files(t testing.TB, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		names = append(names, f.Name())
	}
	return strings.Join(names, " ")
}

func serve(t testing.TB, f http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server.URL
}

func wantFault(t testing.TB, fault *toolgroups.Error, code, part string) {
	t.Helper()
	if fault == nil || fault.Code != code || !strings.Contains(fault.Message, part) {
		t.Errorf("got %+v, want %s: …%s…", fault, code, part)
	}
}

// account is a Google account.
type account struct{ err error }

func (a account) AccessToken(_ context.Context, scope toolgroups.Scope) (string, error) {
	return "token of " + scope.User, a.err
}

func (a account) Email(context.Context, toolgroups.Scope) (string, error) { return "", a.err }
