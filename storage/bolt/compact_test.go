package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// wasteful makes a store of which most was deleted again.
func wasteful(t testing.TB) string {
	t.Helper()
	path := newPath(t)
	if err := os.WriteFile(path, filled(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := bolt.Open(bolt.Config{Path: path, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		key := fmt.Sprint("big ", i)
		if _, err := s.Put(t.Context(), key, make([]byte, 20_000), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if err := s.Delete(t.Context(), fmt.Sprint("big ", i), storage.Any); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// content is all that is in a store, with the revisions.
func content(t testing.TB, path string) string {
	t.Helper()
	s, err := bolt.Open(bolt.Config{Path: path, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	var all bytes.Buffer
	for e, err := range s.List(t.Context(), storage.Range{}) {
		fmt.Fprintln(&all, e, err)
	}
	for _, label := range []string{"", "l"} {
		for r, err := range s.Records(t.Context(), "log", storage.Query{Label: label}) {
			fmt.Fprintln(&all, r, err)
		}
	}
	return all.String()
}

func TestCompactKeepsAllAndFreesSpace(t *testing.T) {
	path := wasteful(t)
	before, beforeContent := fileSize(t, path), content(t, path)
	// What a crash left of an earlier try is in nobody's way.
	if err := os.WriteFile(path+".compact", []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if freed, err := bolt.Compact(t.Context(), bolt.Config{Path: path}, false); err != nil || freed > before || freed < before/2 {
		t.Fatalf("%d of %d bytes were free (%v), want more than half", freed, before, err)
	}
	if freed, err := bolt.Compact(t.Context(), bolt.Config{Path: path}, false); err != nil || freed != 0 {
		t.Errorf("compacted again: %d, %v", freed, err)
	}
	if after := fileSize(t, path); after > before/2 {
		t.Errorf("%d bytes of %d are left", after, before)
	}
	if content(t, path) != beforeContent {
		t.Error("the content has changed")
	}
	// Revisions grow on: a writer with an old one must not win.
	s := open(t, path)
	old, err := s.Get(t.Context(), "key 1")
	if err != nil {
		t.Fatal(err)
	}
	rev, err := s.Put(t.Context(), "key 1", nil, old.Revision)
	if err != nil || rev <= old.Revision {
		t.Errorf("revision %d after %d (%v)", rev, old.Revision, err)
	}
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestCompactRefusesWhatItCanNotCopy(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	open(t, path)
	if _, err := bolt.Compact(t.Context(), bolt.Config{Path: path}, false); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("compacting an open store: %v, want ErrLocked", err)
	}
	bad := newPath(t)
	if err := os.WriteFile(bad, filled(t)[:5*os.Getpagesize()], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Compact(t.Context(), bolt.Config{Path: bad}, false); !errors.Is(err, bolt.ErrDamaged) {
		t.Errorf("compacting a damaged store: %v, want ErrDamaged", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	path = wasteful(t)
	before := content(t, path)
	if _, err := bolt.Compact(ended, bolt.Config{Path: path}, false); !errors.Is(err, context.Canceled) {
		t.Errorf("compacting without a context: %v", err)
	}
	if content(t, path) != before {
		t.Error("the content has changed")
	}
}

// compactAndDie kills its process at a step of a compaction.
func compactAndDie(path string, out io.Writer) error {
	dies, err := strconv.Atoi(os.Getenv(childStep))
	if err != nil {
		return err
	}
	steps := 0
	err = bolt.CompactBy(path, func() {
		if steps++; steps == dies {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			_, _ = fmt.Fprintln(out, err)
			select {}
		}
	})
	_, told := fmt.Fprintln(out, "steps", steps)
	return errors.Join(err, told)
}

func TestAKilledCompactionLosesNothing(t *testing.T) {
	for dies := 1; ; dies++ {
		path := wasteful(t)
		want := content(t, path)
		t.Setenv(childStep, strconv.Itoa(dies))
		cmd, out, _ := startChild(t, "compact", path)
		out.Scan()
		_ = cmd.Wait() // it was killed
		if got := content(t, path); got != want {
			t.Fatalf("after a kill at step %d the content has changed", dies)
		}
		if steps, whole := strings.CutPrefix(out.Text(), "steps "); whole {
			if steps < "5" {
				t.Errorf("only %s steps: the test does not see them", steps)
			}
			return
		}
	}
}

func TestALookAtTheStartFindsDamage(t *testing.T) {
	good, dir := filled(t), t.TempDir()
	damaged := 0
	for page := 3; page < len(good)/os.Getpagesize(); page++ {
		path, at := filepath.Join(dir, fmt.Sprint(page)), page*os.Getpagesize()
		if err := os.WriteFile(path, flip(good, at+8, at+9, at+10, at+11), 0o600); err != nil {
			t.Fatal(err)
		}
		fault := bolt.Verify(t.Context(), path)
		s, err := bolt.Open(bolt.Config{Path: path, NoSync: true, CheckTime: time.Minute})
		switch {
		case err == nil:
			_ = s.Close()
			if fault != nil {
				t.Logf("page %d: the look does not see %v", page, fault)
			}
		case !errors.Is(err, bolt.ErrDamaged) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path):
			t.Errorf("page %d: %v, want one line with the path", page, err)
		default:
			damaged++
		}
	}
	if damaged == 0 {
		t.Error("no damage was found")
	}
	path := newPath(t)
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []time.Duration{time.Nanosecond, time.Minute} {
		s, err := bolt.Open(bolt.Config{Path: path, NoSync: true, CheckTime: limit})
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
	}
}

func TestVerifyTakesOnlyWholeStores(t *testing.T) {
	good := filled(t)
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"good": {good, ""}, "empty": {nil, "empty"}, "text": {bytes.Repeat([]byte("text "), 5000), "not a database"},
		"cut off": {good[:5*os.Getpagesize()], "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			err := bolt.Verify(t.Context(), path)
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, bolt.ErrDamaged) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Verify: %v, want %q", err, c.want)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, c.content) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
	if err := bolt.Verify(t.Context(), newPath(t)); err == nil || errors.Is(err, bolt.ErrDamaged) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestCompactAlwaysLeavesNothingOfWhatWasRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := open(t, path)
	secret := bytes.Repeat([]byte("nobody shall read this "), 500)
	for n := range 40 {
		if _, err := s.Put(t.Context(), fmt.Sprint("key ", n), secret, storage.Absent); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), "log", storage.Position(n), storage.Record{Label: "l", Data: secret}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 40 {
		if err := errors.Join(s.Delete(t.Context(), fmt.Sprint("key ", n), storage.Any), s.Erase(t.Context(), "log", storage.Record{Pos: storage.Position(n + 1)})); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	has := func() bool {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(data, []byte("nobody shall read this"))
	}
	if !has() {
		t.Fatal("the file has nothing of it even before")
	}
	if _, err := bolt.Compact(t.Context(), bolt.Config{Path: path}, true); err != nil || has() {
		t.Errorf("it is still there (%v)", err)
	}
}
