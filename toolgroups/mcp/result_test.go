package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

func TestResults(t *testing.T) {
	c := discovered(t, mcp.Config{}, child(t, "fake"))
	ws := t.TempDir()
	res, fault := run(t, t.Context(), c, "x_content", nil, ws)
	if fault != nil {
		t.Fatal(fault)
	}
	want := strings.Join([]string{
		"first",
		"[picture saved as mcp/x/content-02a3e298.png, 16 bytes]",
		"[audio saved as mcp/x/content-a40ff3d5.wav, 4 bytes]",
		"[resource file:///a.txt]\ninner text",
		"[resource file:///a.pdf saved as mcp/x/content-86edbaa2.pdf, 8 bytes]",
		"[resource b: file:///b]",
		"last",
	}, "\n\n")
	if diff := cmp.Diff(want, res.Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if len(res.Files) != 3 {
		t.Fatalf("files %v", res.Files)
	}
	data, err := os.ReadFile(filepath.Join(ws, res.Files[0].Path))
	if err != nil || string(data) != png {
		t.Errorf("the picture is %q, %v", data, err)
	}
	for tool, want := range map[string]string{
		"x_structured": `{"a":1,"b":"<x>"}`, "x_twice": `{ "a": 1 }`, "x_nothing": "Done. The server returned nothing.",
	} {
		if got := call(t, c, tool, nil); got != want {
			t.Errorf("%s answered %q, want %q", tool, got, want)
		}
	}
	fails(t, c, "x_broken", toolgroups.CodeExecution, "no such city")
}

func TestFilesOfAResultAreBounded(t *testing.T) {
	c := discovered(t, mcp.Config{}, child(t, "fake"))
	ws := t.TempDir()
	res, fault := run(t, t.Context(), c, "x_files", nil, ws)
	if fault != nil || len(res.Files) != 10 || !strings.Contains(res.Text, "not kept: only 10 files of a result are kept") {
		t.Errorf("%d files, %v:\n%s", len(res.Files), fault, res.Text)
	}
	if res, fault = run(t, t.Context(), c, "x_files", nil, ""); fault != nil || len(res.Files) != 0 || !strings.Contains(res.Text, "there is no workspace") {
		t.Errorf("without a workspace: %v\n%s", fault, res.Text)
	}
	outside := t.TempDir()
	must(t, os.RemoveAll(filepath.Join(ws, "mcp")))
	must(t, os.Symlink(outside, filepath.Join(ws, "mcp")))
	if res, fault = run(t, t.Context(), c, "x_files", nil, ws); fault != nil || len(res.Files) != 0 {
		t.Errorf("through a link: %v, %v", fault, res.Files)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside of the workspace: %v, %v", left, err)
	}
}

func TestWhatAServerSaysTwiceIsShownOnce(t *testing.T) {
	c := discovered(t, mcp.Config{}, child(t, "fake"))
	res, fault := run(t, t.Context(), c, "x_shown", nil, t.TempDir())
	if want := "7 files: first\nline\n\n[picture saved as mcp/x/shown-02a3e298.png, 16 bytes]"; fault != nil || res.Text != want || len(res.Files) != 1 {
		t.Errorf("%q, %v, %v", res.Text, res.Files, fault)
	}
	if got, want := call(t, c, "x_more", nil), "Oslo, in 1970\n\n"+`{"city":"Oslo","degrees":7}`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := call(t, c, "x_page", nil); len(got) < 19_000 || len(got) > 21_000 || strings.Contains(got, "[cut") {
		t.Errorf("a file of 20 kB has become %d bytes: %s", len(got), got[len(got)-100:])
	}
}

func TestPicturesInBase64BecomeFiles(t *testing.T) {
	c := discovered(t, mcp.Config{}, child(t, "fake"))
	ws := t.TempDir()
	res, fault := run(t, t.Context(), c, "x_packed", nil, ws)
	if fault != nil || len(res.Files) != 2 || len(res.Text) > 500 || strings.Contains(res.Text, "iVBOR") {
		t.Fatalf("%d files, %v: %s", len(res.Files), fault, res.Text)
	}
	for _, f := range res.Files {
		if data, err := os.ReadFile(filepath.Join(ws, f.Path)); err != nil || !strings.HasPrefix(string(data), png) || filepath.Ext(f.Path) != ".png" {
			t.Errorf("%s holds %q, %v", f.Path, data, err)
		}
	}
}
