package workspace_test

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"oneclaw/internal/workspace"
)

// house is a workspace with a secret beside it.
func house(t *testing.T) (*workspace.Root, string) {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "ws")
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(base, "secret"), []byte("secret"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600))
	must(t, os.Symlink("../secret", filepath.Join(dir, "out")))
	must(t, os.Symlink("..", filepath.Join(dir, "up")))
	must(t, os.Symlink("/etc", filepath.Join(dir, "etc")))
	must(t, os.Symlink("a.txt", filepath.Join(dir, "in")))
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	root, err := workspace.Open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	return root, dir
}

func TestPathsAreConfined(t *testing.T) {
	root, dir := house(t)
	for _, tc := range []struct {
		name, path string
		want       error
	}{
		{"relative", "a.txt", nil},
		{"absolute inside", filepath.Join(dir, "a.txt"), nil},
		{"dots that stay inside", "sub/../a.txt", nil},
		{"link that stays inside", "in", nil},
		{"empty", "", workspace.ErrEmptyPath},
		{"dots", "../secret", workspace.ErrOutside},
		{"dots within", "sub/../../secret", workspace.ErrOutside},
		{"absolute", "/etc/passwd", workspace.ErrOutside},
		{"absolute with the folder's name as prefix", dir + "x/a", workspace.ErrOutside},
		{"absolute with dots", dir + "/../secret", workspace.ErrOutside},
		{"link to a file outside", "out", workspace.ErrOutside},
		{"link to a folder outside", "up/secret", workspace.ErrOutside},
		{"absolute link", "etc/passwd", workspace.ErrOutside},
		{"link to itself", "loop", workspace.ErrOutside},
		{"nul", "a.txt\x00b", workspace.ErrOutside},
		{"missing", "none", fs.ErrNotExist},
		{"folder", "sub", workspace.ErrNotFile},
		{"the workspace itself", dir, workspace.ErrNotFile},
		{"pipe", "pipe", workspace.ErrNotFile},
		{"file as folder", "a.txt/b", workspace.ErrNotFile},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data, err := root.ReadFile(tc.path, 100)
			if !errors.Is(err, tc.want) || tc.want == nil && string(data) != "hello" {
				t.Errorf("ReadFile(%q) = %q, %v; want error %v", tc.path, data, err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), filepath.Dir(dir)) {
				t.Errorf("error shows a path of the host: %v", err)
			}
		})
	}
}

func TestWritesAreConfined(t *testing.T) {
	root, dir := house(t)
	for _, path := range []string{"../x", "up/x", "out", "etc/x", "/tmp/x", "up/new/x"} {
		if err := root.WriteFile(path, []byte("x"), false); !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("WriteFile(%q) = %v, want ErrOutside", path, err)
		}
	}
	secret, err := os.ReadFile(filepath.Join(dir, "..", "secret"))
	if must(t, err); string(secret) != "secret" {
		t.Errorf("the file outside now holds %q", secret)
	}
	for _, path := range []string{"sub", "pipe", "a.txt/x"} {
		if err := root.WriteFile(path, []byte("x"), false); !errors.Is(err, workspace.ErrNotFile) {
			t.Errorf("WriteFile(%q) = %v, want ErrNotFile", path, err)
		}
	}
}

// A command may close a folder, as caches and unpacked archives do. Root is never kept out.
func TestClosedFoldersAreRemoved(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "ws")
	must(t, os.WriteFile(filepath.Join(base, "kept"), []byte("kept"), 0o600))
	for name, mode := range map[string]fs.FileMode{"read": 0o500, "none": 0, ".hidden": 0o500} {
		deep := filepath.Join(dir, name, "deep")
		must(t, os.MkdirAll(deep, 0o700))
		must(t, os.WriteFile(filepath.Join(deep, "file"), []byte("x"), 0o400))
		must(t, os.Symlink(base, filepath.Join(deep, "link")))
		must(t, os.Chmod(deep, mode))
		must(t, os.Chmod(filepath.Dir(deep), mode))
	}
	must(t, os.Chmod(dir, 0))
	must(t, workspace.RemoveAll(dir))
	must(t, workspace.RemoveAll(dir)) // nothing is there
	if names, err := os.ReadDir(base); err != nil || len(names) != 1 {
		t.Errorf("there is %v, %v", names, err)
	}
}

func TestWriteFile(t *testing.T) {
	root, _ := house(t)
	must(t, root.WriteFile("new/deep/f", []byte("one"), false))
	must(t, root.WriteFile("new/deep/f", []byte("two"), true))
	if got, err := root.ReadFile("new/deep/f", 6); err != nil || string(got) != "onetwo" {
		t.Errorf("after append: %q, %v", got, err)
	}
	must(t, root.WriteFile("new/deep/f", []byte("3"), false))
	if got, err := root.ReadFile("new/deep/f", 6); err != nil || string(got) != "3" {
		t.Errorf("after overwrite: %q, %v", got, err)
	}
	info, err := root.Stat("new/deep/f")
	if must(t, err); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestReadFileStopsAtTheLimit(t *testing.T) {
	root, _ := house(t)
	if _, err := root.ReadFile("a.txt", 5); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
	if _, err := root.ReadFile("a.txt", 4); !errors.Is(err, workspace.ErrTooLarge) {
		t.Errorf("one above the limit: %v", err)
	}
}

func TestOpenNeedsTheFolder(t *testing.T) {
	if _, err := workspace.Open(""); err == nil {
		t.Error("an empty folder name was accepted")
	}
	if _, err := workspace.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
}

func FuzzRel(f *testing.F) {
	for _, s := range []string{"a", "../a", "/etc/passwd", "a/../../b", "\x00", "."} {
		f.Add(s)
	}
	dir := f.TempDir()
	root, err := workspace.Open(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = root.Close() })
	f.Fuzz(func(t *testing.T, path string) {
		rel, err := root.Rel(path)
		if err == nil && !filepath.IsLocal(rel) {
			t.Errorf("Rel(%q) = %q", path, rel)
		}
	})
}

func TestAStreamThatBreaksOffChangesNothing(t *testing.T) {
	root, dir := house(t)
	broken := errors.New("broke off")
	stream := io.MultiReader(strings.NewReader("new"), iotest.ErrReader(broken))
	if _, err := root.WriteFrom("a.txt", stream); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "a.txt")); string(data) != "hello" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if n, err := root.WriteFrom("new/b.txt", strings.NewReader("all of it")); n != 9 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	for _, path := range []string{"../x", "sub", "pipe", "out"} {
		if _, err := root.WriteFrom(path, strings.NewReader("x")); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	if parts, err := filepath.Glob(filepath.Join(dir, "*", ".part-*")); len(parts) > 0 || err != nil {
		t.Errorf("left %v, %v", parts, err)
	}
}

// What is being written stays, whoever looks; what is left of a process that died goes.
func TestPartsStayAsLongAsTheyAreWritten(t *testing.T) {
	dir := t.TempDir()
	open := func() *workspace.Root {
		root, err := workspace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() })
		return root
	}
	source, sink := io.Pipe()
	done, writer := make(chan error, 1), open()
	go func() {
		_, err := writer.WriteFrom("a.txt", source)
		done <- err
	}()
	// The first piece makes the writer count the files, too: once it reads the second, that
	// count is over.
	for _, piece := range []string{"half", " "} {
		if _, err := io.WriteString(sink, piece); err != nil {
			t.Fatal(err)
		}
	}
	dead := filepath.Join(dir, ".part-"+rand.Text())
	if err := os.WriteFile(dead, []byte("dead"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := open()
	if used, err := other.UsedBytes(); err != nil || used != 4<<10 {
		t.Errorf("the part that is written counts %d bytes, %v", used, err)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("what is left of a dead process is still there")
	}
	if err := os.WriteFile(dead, []byte("dead"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := other.Sweep("."); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("what is left of a dead process is still there after a sweep")
	}
	if _, err := io.WriteString(sink, "and half"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sink.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	if data, err := other.ReadFile("a.txt", 100); err != nil || string(data) != "half and half" {
		t.Errorf("read %q, %v", data, err)
	}
}
