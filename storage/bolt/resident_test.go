//go:build linux

package bolt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/storage"
)

// TestReadingKeepsLittleResident: however much is read or written, the part of the file
// that counts as memory of the program is bounded.
func TestReadingKeepsLittleResident(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	s, err := Open(Config{Path: path, NoSync: true, residentLimit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	const limit = 3 << 20 // one page of a scan more, and what is around its pages
	value := bytes.Repeat([]byte("v"), 4000)
	check := func(what string) {
		t.Helper()
		if n := residentOf(t, path); n > limit {
			t.Errorf("after %s %d bytes of the file are resident", what, n)
		}
	}
	for n := range 3000 {
		if _, err := s.Put(t.Context(), fmt.Sprintf("k%04d", n), value, storage.Any); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), "log", storage.Position(n), storage.Record{Data: value}); err != nil {
			t.Fatal(err)
		}
	}
	check("writing")
	for _, err := range s.List(t.Context(), storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check("listing")
	for _, err := range s.Records(t.Context(), "log", storage.Query{Backward: true}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check("reading a log")
	for n := range 3000 {
		if _, err := s.Get(t.Context(), fmt.Sprintf("k%04d", n*7%3000)); err != nil {
			t.Fatal(err)
		}
	}
	check("reading values")
}

// residentOf is how much of a mapped file is resident, in bytes.
func residentOf(t *testing.T, path string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("there is no /proc/self/smaps")
	}
	_, ours, found := strings.Cut(string(maps), path+"\n")
	_, rss, ok := strings.Cut(ours, "Rss:")
	var kib int
	if _, err := fmt.Sscan(rss, &kib); !found || !ok || err != nil {
		t.Fatalf("the mapping of %s is not in smaps (%v)", path, err)
	}
	return kib << 10
}
