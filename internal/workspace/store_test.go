package workspace_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/internal/workspace"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // they wait more than they compute
	goleak.VerifyTestMain(m)
}

const owner = "telegram:7"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openStore(t testing.TB) storage.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

// replica is a process with a disk of its own.
type replica struct {
	*workspace.Store
	t   testing.TB
	dir string
}

func newReplica(t testing.TB, store storage.Store) *replica {
	t.Helper()
	return replicaIn(t, store, t.TempDir())
}

func replicaIn(t testing.TB, store storage.Store, dir string) *replica {
	t.Helper()
	return &replica{workspace.NewStore(workspace.StoreConfig{Store: store, Dir: dir, Reserve: 1}), t, dir}
}

func (r *replica) path(name string) string {
	return filepath.Join(workspace.OwnerDir(r.dir, owner), name)
}

func (r *replica) write(name, content string) {
	r.t.Helper()
	must(r.t, os.MkdirAll(filepath.Dir(r.path(name)), 0o700))
	must(r.t, os.WriteFile(r.path(name), []byte(content), 0o600))
}

func (r *replica) prepare() {
	r.t.Helper()
	must(r.t, r.Prepare(r.t.Context(), owner))
}

func (r *replica) keep() {
	r.t.Helper()
	must(r.t, r.Keep(r.t.Context(), owner))
}

// files is what a folder holds, in a form that can be compared.
type files map[string]string

func dump(t testing.TB, dir string) files {
	t.Helper()
	all := files{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			return err
		}
		switch d.Type() {
		case fs.ModeDir:
			all[rel] = "folder"
		case fs.ModeSymlink:
			to, err := os.Readlink(path)
			all[rel] = "link " + to
			return err
		case 0:
			info, err := d.Info()
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			all[rel] = fmt.Sprintf("%v %v %d %.40q %s", info.Mode(), info.ModTime().UnixNano(), len(data), data, sum(data))
			return err
		default:
			all[rel] = "special"
		}
		return nil
	}))
	return all
}

// sum tells contents of one length apart.
func sum(data []byte) string {
	n := 0
	for i, b := range data {
		n = (n*31 + int(b) + i) % 1_000_000_007
	}
	return fmt.Sprint(n)
}

func (r *replica) dump() files {
	r.t.Helper()
	return dump(r.t, workspace.OwnerDir(r.dir, owner))
}

func wantSame(t testing.TB, got, want files) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Fatalf("there is\n%v\nwant\n%v", got, want)
	}
}

func TestFilesGoOnAnotherReplica(t *testing.T) {
	store := openStore(t)
	a, b := newReplica(t, store), newReplica(t, store)
	a.prepare()
	a.write("notes/today.txt", "hello")
	a.write("odd \n\xff\xfe\"name", "odd")
	a.write("empty", "")
	a.write("large", strings.Repeat("0123456789abcdef", 200_000))
	must(t, os.Mkdir(a.path("folder"), 0o700))
	must(t, os.Chmod(a.path("empty"), 0o755))
	must(t, os.Symlink("notes/today.txt", a.path("link")))
	must(t, os.Symlink("/etc/passwd", a.path("out")))
	a.keep()
	b.prepare()
	wantSame(t, b.dump(), a.dump())

	must(t, os.Remove(b.path("large")))
	must(t, os.RemoveAll(b.path("notes")))
	b.write("notes", "a file now")
	must(t, os.Remove(b.path("link")))
	must(t, os.Mkdir(b.path("link"), 0o700))
	b.write("new", "x")
	b.keep()
	a.prepare()
	wantSame(t, a.dump(), b.dump())
}

func TestFilesAreCountedWhileTheyAreCheckedOut(t *testing.T) {
	base := openStore(t)
	a := newReplica(t, base)
	a.prepare()
	a.write("inbox/photo.jpg", "a photo")
	a.keep()
	store := &paused{Store: base}
	b := newReplica(t, store)
	store.act = func() {
		folder := workspace.OwnerDir(b.dir, owner)
		if _, err := os.Stat(folder); err != nil {
			return // it is not made yet
		}
		root, err := workspace.Open(folder)
		must(t, err)
		_, err = root.UsedBytes()
		must(t, errors.Join(err, root.Close()))
	}
	b.prepare()
	wantSame(t, b.dump(), a.dump())
}

func TestWhatChangesWithTheSameLengthAndTimeIsStored(t *testing.T) {
	store := openStore(t)
	a, b := newReplica(t, store), newReplica(t, store)
	a.prepare()
	at := time.Unix(1_000_000_000, 0)
	for i := range 20 {
		a.write("file", fmt.Sprint(100+i))
		must(t, os.Chtimes(a.path("file"), at, at))
		a.keep()
		b.prepare()
		wantSame(t, b.dump(), a.dump())
	}
}

// TestOneOfTwoReplicasWins has two replicas that both believe to serve an owner.
func TestOneOfTwoReplicasWins(t *testing.T) {
	store := openStore(t)
	a, b := newReplica(t, store), newReplica(t, store)
	a.prepare()
	a.write("common", "1")
	a.keep()
	b.prepare()
	b.write("winner", "w")
	b.keep()
	a.write("loser", "l")
	for range 2 {
		if err := a.Keep(t.Context(), owner); !errors.Is(err, storage.ErrConflict) {
			t.Fatalf("the one that was overtaken: %v", err)
		}
	}
	a.prepare()
	wantSame(t, a.dump(), b.dump())
	a.write("loser", "again")
	a.keep()
	b.prepare()
	wantSame(t, b.dump(), a.dump())
}

func TestAConditionBelongsToTheWrite(t *testing.T) {
	store := openStore(t)
	a := newReplica(t, store)
	rev, err := store.Put(t.Context(), "job", nil, storage.Absent)
	must(t, err)
	a.prepare()
	a.write("file", "1")
	must(t, a.Keep(t.Context(), owner, storage.Check("job", rev)))
	before := a.dump()
	_, err = store.Put(t.Context(), "job", nil, rev)
	must(t, err)
	a.write("file", "2")
	if err := a.Keep(t.Context(), owner, storage.Check("job", rev)); !errors.Is(err, storage.ErrConflict) {
		t.Fatalf("of a job that was taken over: %v", err)
	}
	b := newReplica(t, store)
	b.prepare()
	wantSame(t, b.dump(), before)
}

func TestNothingIsWrittenWhereNothingHasChanged(t *testing.T) {
	store := &counting{Store: openStore(t)}
	a := newReplica(t, store)
	a.prepare()
	a.keep()
	if store.writes != 0 {
		t.Errorf("%d writes for an owner without files", store.writes)
	}
	a.write("file", "1")
	a.keep()
	n := store.writes
	a.keep()
	must(t, os.Chmod(a.path("."), 0o700))
	a.keep()
	if store.writes != n {
		t.Errorf("%d writes of what has not changed", store.writes-n)
	}
	a.write("copy", "1")
	a.keep()
	if store.writes != n+1 {
		t.Errorf("%d writes for the copy of a file, want the manifest's alone", store.writes-n)
	}
}

type counting struct {
	storage.Store
	writes int
}

func (c *counting) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	c.writes++
	return c.Store.Write(ctx, ops...)
}

// TestAProcessThatEndsLosesWhatWasNotKept says what a crash between a change and its Keep
// costs, and that files of a time before they were stored are taken in.
func TestAProcessThatEndsLosesWhatWasNotKept(t *testing.T) {
	store := openStore(t)
	dir := t.TempDir()
	a := replicaIn(t, store, dir)
	a.write("former", "1")
	a.prepare()
	a.keep()
	kept := a.dump()
	a.write("unkept", "2")
	must(t, os.Remove(a.path("former")))
	a.prepare()
	if _, err := os.Stat(a.path("unkept")); err != nil {
		t.Error("what a running process has changed is gone:", err)
	}
	again := replicaIn(t, store, dir)
	again.prepare()
	wantSame(t, again.dump(), kept)
}

func TestAMoveIsOneStep(t *testing.T) {
	store := openStore(t)
	a, b := newReplica(t, store), newReplica(t, store)
	a.prepare()
	a.write("docs/a", "1")
	a.keep()
	for range 2 {
		must(t, b.Move(t.Context(), owner, "telegram:8", "before"))
	}
	must(t, b.Prepare(t.Context(), "telegram:8"))
	wantSame(t, dump(t, workspace.OwnerDir(b.dir, "telegram:8")), a.dump())
	a.prepare()
	wantSame(t, a.dump(), files{})
	a.write("more", "2")
	a.keep()
	must(t, b.Move(t.Context(), owner, "telegram:8", "before"))
	must(t, b.Prepare(t.Context(), "telegram:8"))
	// Nothing of the other owner is replaced, and nothing is lost.
	for _, name := range []string{"before-2", "before/more"} {
		must(t, os.WriteFile(filepath.Join(workspace.OwnerDir(b.dir, "telegram:8"), name), []byte("theirs"), 0o600))
	}
	must(t, b.Keep(t.Context(), "telegram:8"))
	a.prepare()
	a.write("more", "3")
	a.keep()
	must(t, b.Move(t.Context(), owner, "telegram:8", "before"))
	must(t, b.Prepare(t.Context(), "telegram:8"))
	got := dump(t, workspace.OwnerDir(b.dir, "telegram:8"))
	for _, name := range []string{"docs/a", "before/more", "before-2", "before-3/more"} {
		if got[name] == "" {
			t.Errorf("there is no %s: %v", name, got)
		}
	}
}
