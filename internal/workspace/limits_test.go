package workspace_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/internal/workspace"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

func within(t *testing.T, dir string, quota, reserve int64) *workspace.Root {
	t.Helper()
	root, err := workspace.OpenWithin(dir, quota, reserve)
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	return root
}

func TestAWorkspaceHoldsItsQuotaAndNoMore(t *testing.T) {
	dir := t.TempDir()
	root := within(t, dir, mib, 1)
	must(t, root.WriteFile("a", make([]byte, 600*kib), false))
	if err := root.WriteFile("b", make([]byte, 600*kib), false); !errors.Is(err, workspace.ErrFull) {
		t.Errorf("beyond the quota: %v", err)
	}
	if err := root.WriteFile("a", make([]byte, 600*kib), true); !errors.Is(err, workspace.ErrFull) {
		t.Errorf("appended beyond the quota: %v", err)
	}
	if _, err := root.Stat("b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was refused left %v", err)
	}
	// Another call, and one that has made room.
	again := within(t, dir, mib, 1)
	if err := again.WriteFile("b", make([]byte, 600*kib), false); !errors.Is(err, workspace.ErrFull) {
		t.Errorf("another call, beyond the quota: %v", err)
	}
	must(t, os.Remove(filepath.Join(dir, "a")))
	must(t, again.WriteFile("b", make([]byte, 600*kib), false))
	must(t, root.WriteFile("c", make([]byte, 300*kib), false))
	if room, err := root.FreeBytes(); err != nil || room != mib-900*kib {
		t.Errorf("there is room for %d, %v", room, err)
	}
}

func TestWhatCountsAgainstTheQuota(t *testing.T) {
	dir := t.TempDir()
	root := within(t, dir, mib, 1)
	used := func(want int64) {
		t.Helper()
		if got, err := root.UsedBytes(); err != nil || got != want {
			t.Errorf("counts %d, %v; want %d", got, err, want)
		}
	}
	used(0)
	must(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	used(4 * kib)
	must(t, os.Truncate(filepath.Join(dir, "empty"), 100*kib)) // with a hole
	used(100 * kib)
	outside := filepath.Join(t.TempDir(), "large")
	must(t, os.WriteFile(outside, make([]byte, mib), 0o600))
	must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "folder")))
	used(108 * kib)
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "a/b/c"), make([]byte, 5*kib), 0o600))
	used(121 * kib)
}

// Many empty files are bounded as well.
func TestEmptyFilesCount(t *testing.T) {
	root := within(t, t.TempDir(), 40*kib, 1)
	n := 0
	for ; root.WriteFile(strings.Repeat("x", n+1), nil, false) == nil; n++ {
	}
	if n != 10 {
		t.Errorf("%d empty files", n)
	}
}

func TestNothingIsHiddenFromTheCount(t *testing.T) {
	dir := t.TempDir()
	root := within(t, dir, mib, 1)
	deep := filepath.Join(dir, strings.Repeat("d/", 70))
	must(t, os.MkdirAll(deep, 0o700))
	if err := root.WriteFile("a", nil, false); !errors.Is(err, workspace.ErrUncounted) {
		t.Errorf("with folders too deep: %v", err)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "d")))
	must(t, root.WriteFile("a", nil, false))
	if os.Geteuid() == 0 {
		return // Root looks into every folder.
	}
	locked := filepath.Join(dir, "locked")
	must(t, os.Mkdir(locked, 0))
	t.Cleanup(func() { must(t, os.Chmod(locked, 0o700)) }) //nolint:gosec // a folder of the test
	if err := within(t, dir, mib, 1).WriteFile("b", nil, false); !errors.Is(err, workspace.ErrUncounted) {
		t.Errorf("with a locked folder: %v", err)
	}
}

func TestTheReserveStaysFree(t *testing.T) {
	dir := t.TempDir()
	root := within(t, dir, mib, 1<<60)
	if err := root.WriteFile("a", []byte("x"), false); !errors.Is(err, workspace.ErrDiskFull) {
		t.Errorf("into the reserve: %v", err)
	}
	if room, err := root.FreeBytes(); room != 0 || !errors.Is(err, workspace.ErrDiskFull) {
		t.Errorf("there is room for %d, %v", room, err)
	}
	if _, err := root.BoundedWriter(io.Discard).Write([]byte("x")); !errors.Is(err, workspace.ErrDiskFull) {
		t.Errorf("a stream into the reserve: %v", err)
	}
}

// zeros never end.
type zeros struct{}

// Read implements [io.Reader].
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestAStreamIsBounded(t *testing.T) {
	dir := t.TempDir()
	root := within(t, dir, mib, 1)
	must(t, root.WriteFile("a", make([]byte, 200*kib), false))
	part, err := os.Create(filepath.Join(dir, "part"))
	must(t, err)
	n, err := io.Copy(root.BoundedWriter(part), io.LimitReader(zeros{}, 2*mib))
	if must(t, part.Close()); !errors.Is(err, workspace.ErrFull) || n > mib-200*kib || n < mib-300*kib {
		t.Errorf("%d bytes went through, %v", n, err)
	}
}
