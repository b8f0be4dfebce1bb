package database

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// fullDisk names the data directory of a process that may not write to files.
const fullDisk = "TEST_ONECLAW_FULL_DISK"

// A process makes its secret key while the disk is full. When there is room again, the next one makes it.
func TestAFullDiskLeavesNoPartOfASecretKey(t *testing.T) {
	if dir := os.Getenv(fullDisk); dir != "" {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{}); err != nil {
			t.Skip("no limit for the size of files:", err)
		}
		if _, err := (Place{Dir: dir}).SecretKey(t.Context(), nil); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("with a full disk: %v", err)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at := Place{Dir: t.TempDir()}
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), fullDisk+"="+at.Dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	key, err := at.SecretKey(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := at.SecretKey(t.Context(), nil)
	if err != nil || string(again) != string(key) {
		t.Errorf("the next start has another key: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(at.Dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("there are %q, %v", left, err)
	}
}
