package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/internal/workspace"
	"oneclaw/storage"
)

// replicaHarness is the folder of skills on the disk of a replica.
type replicaHarness struct {
	*workspace.SharedFolder
	t   *testing.T
	dir string // of the replica
}

func newDesk(t *testing.T, store storage.Store, dir string) replicaHarness {
	t.Helper()
	return replicaHarness{workspace.NewStore(workspace.StoreConfig{Store: store, Dir: dir, Reserve: 1}).SharedFolder("skills"), t, dir}
}

func (d replicaHarness) path(name string) string { return filepath.Join(d.dir, "skills", name) }

func (d replicaHarness) write(name, content string) {
	d.t.Helper()
	must(d.t, os.MkdirAll(filepath.Dir(d.path(name)), 0o700))
	must(d.t, os.WriteFile(d.path(name), []byte(content), 0o600))
}

func (d replicaHarness) sync() {
	d.t.Helper()
	must(d.t, d.Sync(d.t.Context()))
}

func (d replicaHarness) want(name, content string) {
	d.t.Helper()
	data, err := os.ReadFile(d.path(name))
	if content == "" && errors.Is(err, os.ErrNotExist) {
		return
	}
	if string(data) != content || err != nil {
		d.t.Errorf("%s is %q, %v; want %q", name, data, err, content)
	}
}

func TestAFolderIsTheSameEverywhere(t *testing.T) {
	store := openStore(t)
	a, b := newDesk(t, store, t.TempDir()), newDesk(t, store, t.TempDir())
	a.write("one/SKILL.md", "1")
	a.write(".git/config", "mine")
	b.write("two/SKILL.md", "2")
	a.sync()
	b.sync()
	a.sync()
	for _, d := range []replicaHarness{a, b} {
		d.want("one/SKILL.md", "1")
		d.want("two/SKILL.md", "2")
	}
	a.want(".git/config", "mine")
	b.want(".git/config", "")
	// Changes of several files at several places come together.
	a.write("one/SKILL.md", "1a")
	must(t, os.RemoveAll(b.path("two")))
	b.write("three/SKILL.md", "3")
	b.sync()
	a.sync()
	b.sync()
	for _, d := range []replicaHarness{a, b} {
		d.want("one/SKILL.md", "1a")
		d.want("two/SKILL.md", "")
		d.want("three/SKILL.md", "3")
	}
}

func TestAChangeWhileNobodyRunsIsFound(t *testing.T) {
	store := openStore(t)
	dir := t.TempDir()
	a := newDesk(t, store, dir)
	a.write("one", "1")
	a.write("gone", "x")
	a.sync()
	b := newDesk(t, store, t.TempDir())
	b.sync()
	b.write("two", "2")
	b.sync()
	a.write("one", "1a") // and no process of a runs
	must(t, os.Remove(a.path("gone")))
	a = newDesk(t, store, dir)
	a.sync()
	b.sync()
	for _, d := range []replicaHarness{a, b} {
		d.want("one", "1a")
		d.want("two", "2")
		d.want("gone", "")
	}
}

func TestOfTwoChangesOfAFileTheFirstCounts(t *testing.T) {
	store := openStore(t)
	a, b := newDesk(t, store, t.TempDir()), newDesk(t, store, t.TempDir())
	a.write("one", "1")
	a.sync()
	b.sync()
	a.write("one", "a")
	b.write("one", "b")
	b.write("other", "b")
	a.sync()
	err := b.Sync(t.Context())
	if lost, ok := errors.AsType[*workspace.LostError](err); !ok || len(lost.Paths) != 1 || lost.Paths[0] != "one" {
		t.Errorf("the second: %v", err)
	}
	a.sync()
	b.sync()
	for _, d := range []replicaHarness{a, b} {
		d.want("one", "a")
		d.want("other", "b")
	}
}

// TestASyncThatIsCutOffLosesNothing breaks the connection at each write, before it is done or
// after, and ends the process.
func TestASyncThatIsCutOffLosesNothing(t *testing.T) {
	for in := 1; in <= 3; in++ {
		for _, after := range []bool{false, true} {
			for _, ends := range []bool{false, true} {
				base := openStore(t)
				store, dir := &cut{Store: base, after: after}, t.TempDir()
				a, b := newDesk(t, store, dir), newDesk(t, base, t.TempDir())
				a.write("one", "1")
				a.sync()
				b.sync()
				b.write("two", "2")
				b.sync()
				a.write("one", "1a")
				a.write("three", "3")
				store.in = in
				if err := a.Sync(t.Context()); err != nil && !errors.Is(err, errCut) {
					t.Error(err)
				}
				store.in = 0
				if ends {
					a = newDesk(t, base, dir)
				}
				a.sync()
				b.sync()
				for _, d := range []replicaHarness{a, b} {
					d.want("one", "1a")
					d.want("two", "2")
					d.want("three", "3")
				}
			}
		}
	}
}

func TestFollowSeesWhatOthersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dir := openStore(t), t.TempDir()
		s := workspace.NewStore(workspace.StoreConfig{Store: store, Dir: dir, Reserve: 1})
		b := replicaHarness{s.SharedFolder("skills"), t, dir}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Follow(ctx, 0, b.SharedFolder)
		pass(t, time.Minute)
		a := newDesk(t, store, t.TempDir())
		a.write("one", "1")
		a.sync()
		pass(t, workspace.DefaultFollowInterval)
		synctest.Wait()
		b.want("one", "1")
	})
}

// What a disk has from one store is not deleted because another store never had it.
func TestAFolderGoesToAnotherStoreWhole(t *testing.T) {
	dir := t.TempDir()
	newDesk(t, nil, dir).write("one/SKILL.md", "1")
	for range 2 {
		store := openStore(t)
		a, b := newDesk(t, store, dir), newDesk(t, store, t.TempDir())
		a.sync()
		b.sync()
		a.want("one/SKILL.md", "1")
		b.want("one/SKILL.md", "1")
	}
}
