package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"oneclaw/internal/workspace"
	"oneclaw/storage"
)

func TestFilesOfFormerTimesAreImportedOnce(t *testing.T) {
	store, dir := openStore(t), t.TempDir()
	a, b := replicaIn(t, store, dir), newReplica(t, store)
	a.write("former", "1")
	other := workspace.OwnerDir(dir, "slack:C/1")
	must(t, os.MkdirAll(other, 0o700))
	must(t, os.WriteFile(filepath.Join(other, "mine"), []byte("a"), 0o600))
	must(t, b.Prepare(t.Context(), "slack:C/1"))
	must(t, os.WriteFile(filepath.Join(workspace.OwnerDir(b.dir, "slack:C/1"), "theirs"), []byte("b"), 0o600))
	must(t, b.Keep(t.Context(), "slack:C/1"))
	want := a.dump()
	must(t, a.Import(t.Context()))
	b.prepare()
	wantSame(t, b.dump(), want)
	// What somebody else has stored counts; nothing is deleted.
	if data, err := os.ReadFile(filepath.Join(dir, "workspaces-not-stored", filepath.Base(other), "mine")); string(data) != "a" {
		t.Errorf("the files that are not stored: %q, %v", data, err)
	}
	must(t, a.Prepare(t.Context(), "slack:C/1"))
	if _, err := os.Stat(filepath.Join(other, "theirs")); err != nil {
		t.Error(err)
	}
	// The next process has nothing to do.
	a.write("unkept", "2")
	again := replicaIn(t, store, dir)
	must(t, again.Import(t.Context()))
	again.prepare()
	wantSame(t, again.dump(), want)
}

// Files are kept in the store, on the disk alone, and in the store again, twice.
func TestFilesOfATimeWithoutTheStoreAreNotLost(t *testing.T) {
	store, dir := openStore(t), t.TempDir()
	for round, moved := range []string{"telegram:7/", "telegram:7/files/"} {
		with := replicaIn(t, store, dir)
		must(t, with.Import(t.Context()))
		with.prepare()
		with.write("a", "1")
		with.keep()
		must(t, workspace.ForgetImport(dir)) // as at each start without the store
		for _, newer := range []bool{false, true} {
			if newer {
				with.write("b", fmt.Sprint(round))
				must(t, workspace.ForgetImport(dir))
			}
			again := replicaIn(t, store, dir)
			must(t, again.Import(t.Context()))
			again.prepare()
			if data, err := os.ReadFile(again.path("a")); string(data) != "1" {
				t.Errorf("a: %q, %v", data, err)
			}
			found, err := filepath.Glob(filepath.Join(dir, "workspaces-not-stored", moved, "b"))
			must(t, err)
			if (len(found) == 1) != newer {
				t.Fatalf("round %d, with newer files %t: beside the workspaces: %q", round, newer, found)
			}
			for _, path := range found {
				if data, err := os.ReadFile(path); string(data) != fmt.Sprint(round) {
					t.Errorf("%s: %q, %v", path, data, err)
				}
			}
		}
	}
}

// The step from format 4 is made again where it broke off: once a chunk is with its folder, the shared one may be gone.
func TestSharedChunksGoToTheirFolders(t *testing.T) {
	store := openStore(t)
	a := newReplica(t, store)
	a.prepare()
	a.write("one", "1")
	a.write("two", "2")
	a.keep()
	var shared []string
	for e, err := range store.List(t.Context(), storage.Range{Prefix: "blob/"}) {
		must(t, err)
		shared = append(shared, "blob/data/"+filepath.Base(e.Key))
		_, err = store.Write(t.Context(), storage.Put(shared[len(shared)-1], e.Value, storage.Absent), storage.Delete(e.Key, e.Revision))
		must(t, err)
	}
	for _, key := range shared {
		must(t, workspace.CopySharedChunks(t.Context(), store))
		must(t, store.Delete(t.Context(), key, storage.Any))
	}
	b := newReplica(t, store)
	b.prepare()
	wantSame(t, b.dump(), a.dump())
}
