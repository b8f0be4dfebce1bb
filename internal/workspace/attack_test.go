package workspace_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/workspace"
)

func TestAttackTheQuotaHoldsForWhatIsStored(t *testing.T) {
	store := openStore(t)
	dir := t.TempDir()
	a := &replica{workspace.NewStore(workspace.StoreConfig{Store: store, Dir: dir, Quota: 1 << 20, Reserve: 1}), t, dir}
	a.prepare()
	a.write("file", "1")
	a.keep()
	kept := a.dump()
	// A file of holes takes no room here and all of it there.
	must(t, os.Truncate(a.path("file"), 1<<40))
	if err := a.Keep(t.Context(), owner); !errors.Is(err, workspace.ErrFull) {
		t.Fatalf("a file of a TiB: %v", err)
	}
	b := newReplica(t, store)
	b.prepare()
	wantSame(t, b.dump(), kept)
	// What came beyond the quota is no burden for the next process.
	c := replicaIn(t, store, dir)
	c.prepare()
	wantSame(t, c.dump(), kept)
	// Small ones count too.
	for i := range 256 {
		c.write(fmt.Sprint("small", i), "")
	}
	d := &replica{workspace.NewStore(workspace.StoreConfig{Store: store, Dir: dir, Quota: 1 << 20, Reserve: 1}), t, dir}
	d.prepare()
	for i := range 256 {
		d.write(fmt.Sprint("small", i), "")
	}
	if err := d.Keep(t.Context(), owner); !errors.Is(err, workspace.ErrFull) {
		t.Fatalf("256 small files: %v", err)
	}
	must(t, os.Remove(d.path("small0")))
	d.keep()
}

func TestAttackFilesAreBoundedInNumberAndDepth(t *testing.T) {
	store := openStore(t)
	dir := t.TempDir()
	a := &replica{workspace.NewStore(workspace.StoreConfig{Store: store, Dir: dir, MaxEntries: 100, Reserve: 1}), t, dir}
	a.prepare()
	for i := range 101 {
		must(t, os.Mkdir(a.path(fmt.Sprint(i)), 0o700))
	}
	if err := a.Keep(t.Context(), owner); !errors.Is(err, workspace.ErrTooMany) {
		t.Errorf("101 folders: %v", err)
	}
	must(t, os.RemoveAll(a.path(".")))
	must(t, os.MkdirAll(a.path(strings.Repeat("d/", 70)), 0o700))
	if err := a.Keep(t.Context(), owner); !errors.Is(err, workspace.ErrUncounted) {
		t.Errorf("70 folders in each other: %v", err)
	}
	// Another process has stored something: what cannot be looked through gives way.
	b := newReplica(t, store)
	b.prepare()
	b.write("file", "1")
	b.keep()
	a.prepare()
	wantSame(t, a.dump(), b.dump())
	if left, err := filepath.Glob(filepath.Join(a.dir, "unreadable-*")); len(left) > 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestAttackSpecialFilesAreLeftOut(t *testing.T) {
	store := openStore(t)
	a, b := newReplica(t, store), newReplica(t, store)
	a.prepare()
	a.write("file", "1")
	kept := a.dump()
	must(t, syscall.Mkfifo(a.path("pipe"), 0o600))
	a.keep()
	b.prepare()
	wantSame(t, b.dump(), kept)
	must(t, syscall.Mkfifo(b.path("pipe"), 0o600))
	b.write("more", "2")
	b.keep()
	a.prepare() // a pipe that nobody stored does not stay
	must(t, os.Remove(b.path("pipe")))
	wantSame(t, a.dump(), b.dump())
}

// TestAttackLinksLeadNowhere has links, here and in the store, where files are checked out.
func TestAttackLinksLeadNowhere(t *testing.T) {
	store := openStore(t)
	a, b := newReplica(t, store), newReplica(t, store)
	outside := t.TempDir()
	a.prepare()
	must(t, os.Symlink(outside, a.path("dir")))
	must(t, os.Symlink(filepath.Join(outside, "victim"), a.path("file")))
	a.keep()
	b.prepare()
	wantSame(t, b.dump(), a.dump())
	must(t, os.Remove(b.path("dir")))
	must(t, os.Remove(b.path("file")))
	b.write("dir/victim", "evil")
	b.write("file", "evil")
	b.keep()
	a.prepare()
	wantSame(t, a.dump(), b.dump())
	if names, err := os.ReadDir(outside); len(names) > 0 || err != nil {
		t.Errorf("outside there is %v, %v", names, err)
	}
}

// TestAttackFoldersThatCannotBeWrittenTo are those that a tool has made so.
func TestAttackFoldersThatCannotBeWrittenTo(t *testing.T) {
	store := openStore(t)
	a, b := newReplica(t, store), newReplica(t, store)
	a.prepare()
	a.write("closed/deep/file", "1")
	a.write("gone/deep/file", "2")
	a.keep()
	for _, name := range []string{"closed/deep", "closed", "gone/deep", "gone"} {
		must(t, os.Chmod(a.path(name), 0o500))
	}
	must(t, os.Chmod(a.path("closed/deep/file"), 0o400))
	a.keep()
	b.prepare()
	b.write("closed/deep/file", "3")
	must(t, os.RemoveAll(b.path("gone")))
	b.keep()
	a.prepare()
	wantSame(t, a.dump(), b.dump())
}

// TestAttackAFileThatIsWrittenMeanwhile goes on changing while it is stored.
func TestAttackAFileThatIsWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	a, b := newReplica(t, store), newReplica(t, store)
	a.prepare()
	a.write("log", strings.Repeat("x", workspace.ChunkSize))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		f, err := os.OpenFile(a.path("log"), os.O_WRONLY|os.O_APPEND, 0)
		for n := 0; err == nil && n < 64; n++ {
			select {
			case <-stop:
				n = 64
			default:
				_, err = f.WriteString(strings.Repeat("y", 1<<20))
			}
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Error(err)
		}
	}()
	a.keep()
	a.keep()
	close(stop)
	<-done
	a.keep()
	b.prepare()
	wantSame(t, b.dump(), a.dump())
}

func TestAttackAManifestThatLeadsOut(t *testing.T) {
	for _, value := range []string{
		`[{"p":"Li4veA=="}]`,         // ../x
		`[{"p":"L2V0Yy94"}]`,         // /etc/x
		`[{"p":""}]`,                 // nothing
		`[{"p":"Lg=="}]`,             // .
		`[{"p":"YQBi"}]`,             // a\x00b
		`[{"p":"YS9i"}]`,             // a/b without a
		`[{"p":"YQ==","s":5}]`,       // no chunk
		`[{"p":"YQ==","m":8388608}]`, // setuid
		`{`,
	} {
		store := openStore(t)
		_, err := store.Put(t.Context(), "files/owner/"+owner, []byte(value), 0)
		must(t, err)
		a := newReplica(t, store)
		if err := a.Prepare(t.Context(), owner); err == nil {
			t.Errorf("%s was checked out: %v", value, a.dump())
		}
	}
}
