package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer"
	"go.uber.org/goleak"

	"oneclaw/internal/readable"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/core"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == readable.Argument {
		if err := readable.Serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	_ = flag.Set("test.parallel", "8") // they wait more than they compute
	goleak.VerifyTestMain(m)
}

// harness is a workspace and the tools at work in it.
type harness struct {
	dir   string
	tools map[string]toolgroups.Tool
}

func newDesk(t testing.TB, cfg core.Config) *harness {
	t.Helper()
	list, err := core.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := &harness{dir: t.TempDir(), tools: map[string]toolgroups.Tool{}}
	for _, tool := range list {
		tool.Timeout = 5 * time.Minute // other programs may keep this machine busy
		d.tools[tool.Name] = tool
	}
	return d
}

func (d *harness) scope() toolgroups.Scope {
	return toolgroups.Scope{Workspace: d.dir, Owner: "telegram:1", User: "telegram:1", Role: toolgroups.RoleUser, Message: "telegram:1/7/text"}
}

// run dispatches a call as the agent does, with validation.
func (d *harness) run(t testing.TB, tool string, args any) (toolgroups.Result, *toolgroups.Error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return toolgroups.Run(t.Context(), nil, d.tools[tool], toolgroups.Call{Name: tool, Arguments: raw, Scope: d.scope()})
}

func (d *harness) must(t testing.TB, tool string, args any) string {
	t.Helper()
	res, err := d.run(t, tool, args)
	if err != nil {
		t.Fatalf("%s(%v): %s: %s", tool, args, err.Code, err.Message)
	}
	return res.Text
}

func (d *harness) fails(t testing.TB, tool string, args any, code, text string) {
	t.Helper()
	res, err := d.run(t, tool, args)
	if err == nil || err.Code != code || !strings.Contains(err.Message, text) {
		t.Errorf("%s(%v) = %q, %+v; want %s with %q", tool, args, res.Text, err, code, text)
	}
}

func (d *harness) put(t testing.TB, name, data string) {
	t.Helper()
	file := filepath.Join(d.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(data), 0o600)); err != nil {
		t.Fatal(err)
	}
}

type args map[string]any

// Manifests of one object are core tools, arrays are groups.
func TestSingleObjectManifestsAreCore(t *testing.T) {
	list, err := core.New(core.Config{})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: list})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"read_file", "write_file", "get_current_time", "http_request"} {
		if _, grouped := registry.GroupOf(name); grouped {
			t.Errorf("%s is in a group", name)
		}
		if _, ok := registry.Tool(name); !ok {
			t.Errorf("%s is missing", name)
		}
	}
}

// Every schema is complete as it stands in the manifest.
func TestSchemasAreComplete(t *testing.T) {
	for name, tool := range newDesk(t, core.Config{}).tools {
		params, err := toolgroups.NormalizeParameters(tool.Parameters)
		if err != nil || string(params) != string(tool.Parameters) {
			t.Errorf("%s: %s, %v", name, tool.Parameters, err)
		}
	}
}

// The thirteen core tools and the listing may cost 1,800 tokens; these seven have
// 600 of them.
func TestSchemasAreTerse(t *testing.T) {
	list, err := core.New(core.Config{})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	n, err := codec.Count(string(toolgroups.EncodeTools(list)))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tokens", n)
	if n > 600 {
		t.Errorf("the schemas cost %d tokens", n)
	}
}

func TestCurrentTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 8, 30, 0, 123456789, time.UTC)
	d := newDesk(t, core.Config{Location: func(context.Context, toolgroups.Scope) *time.Location { return berlin }, Now: func() time.Time { return now }})
	for _, tc := range []struct {
		args args
		want string
	}{
		{nil, "2026-03-01T09:30:00.123+01:00"},
		{args{"timezone": "America/New_York"}, "2026-03-01T03:30:00.123-05:00"},
		{args{"timezone": "UTC"}, "2026-03-01T08:30:00.123+00:00"},
		{args{"format": "human_readable"}, "Sunday, March 1, 2026 at 9:30:00 AM CET"},
	} {
		if got := d.must(t, "get_current_time", tc.args); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.args, got, tc.want)
		}
	}
	for _, zone := range []string{"Mars/Olympus", "../../etc/passwd", "/etc/localtime", "./UTC"} {
		d.fails(t, "get_current_time", args{"timezone": zone}, "execution_error", "Unknown time zone")
	}
	d.fails(t, "get_current_time", args{"format": "unix"}, "validation_error", "'format' must be one of")
}

func TestReadFile(t *testing.T) {
	d := newDesk(t, core.Config{})
	d.put(t, "a/b.txt", "grüße\n")
	d.put(t, "empty.txt", "")
	d.put(t, "latin.txt", "gr\xfc\xdfe")
	d.put(t, "utf16.txt", "\xff\xfeh\x00i\x00")
	d.put(t, "large.txt", strings.Repeat("x", 1<<20+1))
	d.put(t, "binary", "a\x00b")
	for _, tc := range []struct{ path, encoding, want string }{
		{"a/b.txt", "", "grüße\n"},
		{"a/b.txt", "utf-8", "grüße\n"},
		{"empty.txt", "", ""},
		{filepath.Join(d.dir, "a/b.txt"), "", "grüße\n"},
		{"latin.txt", "ISO-8859-1", "grüße"},
		{"utf16.txt", "UTF-16", "hi"},
	} {
		if got := d.must(t, "read_file", args{"path": tc.path, "encoding": tc.encoding}); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.path, got, tc.want)
		}
	}
	for _, tc := range []struct{ path, encoding, code, text string }{
		{"", "", "execution_error", "'path' is empty"},
		{"none.txt", "", "execution_error", "no file 'none.txt'"},
		{"a", "", "execution_error", "not a file"},
		{"../x", "", "execution_error", "outside the workspace"},
		{"/etc/passwd", "", "execution_error", "outside the workspace"},
		{"large.txt", "", "execution_error", "limit of 1048576 bytes"},
		{"latin.txt", "", "execution_error", "not UTF-8"},
		{"binary", "", "execution_error", "not UTF-8"},
		{"a/b.txt", "klingon", "execution_error", "Unknown encoding 'klingon'"},
	} {
		d.fails(t, "read_file", args{"path": tc.path, "encoding": tc.encoding}, tc.code, tc.text)
	}
	d.fails(t, "read_file", args{}, "validation_error", "'path'")
}

func TestWriteFile(t *testing.T) {
	d := newDesk(t, core.Config{})
	for _, tc := range []struct {
		args args
		want string
		file string
	}{
		{args{"path": "n/ü.txt", "content": "grüße"}, "Wrote 7 bytes to n/ü.txt (overwrite)", "grüße"},
		{args{"path": "n/ü.txt", "content": "!", "mode": "append"}, "Wrote 1 bytes to n/ü.txt (append)", "grüße!"},
		{args{"path": filepath.Join(d.dir, "n/ü.txt"), "content": "", "mode": "overwrite"}, "Wrote 0 bytes to n/ü.txt (overwrite)", ""},
	} {
		if got := d.must(t, "write_file", tc.args); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.args, got, tc.want)
		}
		if data, err := os.ReadFile(filepath.Join(d.dir, "n/ü.txt")); err != nil || string(data) != tc.file {
			t.Errorf("the file holds %q, %v", data, err)
		}
	}
	d.fails(t, "write_file", args{"path": "a"}, "validation_error", "'content'")
	d.fails(t, "write_file", args{"path": "a", "content": "b", "mode": "prepend"}, "validation_error", "'mode'")
	d.fails(t, "write_file", args{"path": "n", "content": "b"}, "execution_error", "not a file")
	d.fails(t, "write_file", args{"path": "a", "content": strings.Repeat("x", 1<<20+1)}, "execution_error", "limit of 1048576")
}

// A mistake in the arguments is no reason to ask later: the error repeats the path of the call, and nobody else's words.
func TestAPathThatCannotBeWrittenIsSaidInTheProgramsOwnWords(t *testing.T) {
	d := newDesk(t, core.Config{})
	d.put(t, "n/a", "b")
	for path, own := range map[string]bool{"": true, "../a": true, "n": true, strings.Repeat("x", 300): false} {
		if _, fault := d.run(t, "write_file", args{"path": path, "content": "b"}); fault == nil || fault.Own != own {
			t.Errorf("%.20q: %+v", path, fault)
		}
	}
}

// No path leads out, also not through links made beforehand.
func TestFilesAreConfined(t *testing.T) {
	d := newDesk(t, core.Config{})
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(d.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"link/secret", "../" + filepath.Base(outside) + "/secret", outside + "/secret", "link/../../secret"} {
		d.fails(t, "read_file", args{"path": path}, "execution_error", "")
		d.fails(t, "write_file", args{"path": path, "content": "x"}, "execution_error", "")
	}
	if data, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(data) != "secret" {
		t.Errorf("the file outside holds %q, %v", data, err)
	}
}
