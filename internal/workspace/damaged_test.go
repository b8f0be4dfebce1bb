package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"oneclaw/internal/workspace"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// Files in the store of which the list does not decode, or a part is gone, are an error for their
// owner alone, which ends the turn that needs them (bridge.TestAStepThatBreaksEndsItsOwnJobAlone).
func TestFilesThatCannotBeCheckedOutAreAnErrorForTheirOwnerAlone(t *testing.T) {
	const owner, other = "fake:1", "fake:2"
	for name, damage := range map[string]func(s storage.Store) error{
		"the list": func(s storage.Store) error {
			_, err := s.Put(t.Context(), "files/owner/"+owner, []byte("{"), storage.Any)
			return err
		},
		"a part": func(s storage.Store) error {
			for e, err := range s.List(t.Context(), storage.Range{Prefix: "blob/"}) {
				if err != nil {
					return err
				}
				if err := s.Delete(t.Context(), e.Key, storage.Any); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			dir := t.TempDir()
			before := workspace.NewStore(workspace.StoreConfig{Store: store, Dir: dir})
			if err := before.Prepare(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(workspace.OwnerDir(dir, owner), "a.txt"), []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := before.Keep(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			if err := damage(store); err != nil {
				t.Fatal(err)
			}
			after := workspace.NewStore(workspace.StoreConfig{Store: store, Dir: t.TempDir()})
			if err := after.Prepare(t.Context(), owner); err == nil {
				t.Error("damaged files were checked out")
			}
			if err := after.Prepare(t.Context(), other); err != nil {
				t.Errorf("another owner: %v", err)
			}
		})
	}
}
