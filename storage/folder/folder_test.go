package folder_test

import (
	"os"
	"path/filepath"
	"testing"

	"oneclaw/storage/folder"
)

func TestAFileIsReplacedAsAWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, want := range []string{"first", "second"} {
		if err := folder.Replace(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); string(data) != want {
			t.Errorf("the file holds %q, %v; want %q", data, err, want)
		}
	}
	taken := filepath.Join(dir, "folder")
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := folder.Replace(taken, []byte("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info, err)
	}
}
