package bolt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

func TestSecondOpenerIsRefused(t *testing.T) {
	path := newPath(t)
	open(t, path)
	_, err := bolt.Open(bolt.Config{Path: path})
	if !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("second Open: %v, want ErrLocked and the path", err)
	}
}

// filled returns the content of a store with a few logs and values.
func filled(t testing.TB) []byte {
	t.Helper()
	path := newPath(t)
	s, err := bolt.Open(bolt.Config{Path: path, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if _, err := s.Put(t.Context(), fmt.Sprint("key ", i), bytes.Repeat([]byte("v"), 100), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	for i := range storage.Position(200) {
		if _, err := s.Append(t.Context(), "log", i, storage.Record{Label: "l", Data: bytes.Repeat([]byte("d"), 100)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestOpenRefusesBadFiles(t *testing.T) {
	good := filled(t)
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"one byte", []byte("x"), "not a database or damaged"},
		{"text", bytes.Repeat([]byte("text "), 5000), "not a database or damaged"},
		{"zeros", make([]byte, 1<<16), "not a database or damaged"},
		{"cut off in the header", good[:1000], "not a database or damaged"},
		{"cut off behind the header", good[:2*os.Getpagesize()], "cut off"},
		{"cut off in the middle", good[:5*os.Getpagesize()+17], "cut off"},
		{"both headers flipped", flip(good, 20, os.Getpagesize()+20), "not a database or damaged"},
		{"both checksums flipped", flip(good, 74, os.Getpagesize()+74), "not a database or damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := newPath(t)
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			wantOpenError(t, path, c.want)
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(after, c.content) {
				t.Errorf("the file was changed (%v)", err)
			}
			// The file is not left locked.
			wantOpenError(t, path, c.want)
		})
	}
}

func flip(content []byte, at ...int) []byte {
	content = bytes.Clone(content)
	for _, i := range at {
		content[i] ^= 0xff
	}
	return content
}

// wantOpenError wants one line that names the file and contains want.
func wantOpenError(t *testing.T, path, want string) {
	t.Helper()
	s, err := bolt.Open(bolt.Config{Path: path})
	if err == nil {
		t.Fatal("opened", s.Close())
	}
	text := err.Error()
	if !strings.Contains(text, want) || strings.Count(text, path) != 1 || strings.Contains(text, "\n") {
		t.Errorf("Open: %q, want one line with the path once and %q", text, want)
	}
}

func TestOpenTakesAnEmptyFile(t *testing.T) {
	path := newPath(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path).Put(t.Context(), "k", nil, storage.Absent); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesBadPlaces(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, dir, "not a regular file")
	wantOpenError(t, filepath.Join(file, "store.db"), "not a directory")
	wantOpenError(t, filepath.Join(dir, "missing", "store.db"), "no such file")
	if _, err := bolt.Open(bolt.Config{}); err == nil {
		t.Error("opened without a path")
	}
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("this user may write to every directory")
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, filepath.Join(dir, "store.db"), "permission denied")
}

// edit changes a closed store behind the back of the package.
func edit(t testing.TB, path string, f func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesOtherLayouts(t *testing.T) {
	newer := newPath(t)
	edit(t, newer, func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucket([]byte("meta"))
		if err != nil {
			return err
		}
		return meta.Put([]byte("version"), binary.BigEndian.AppendUint64(nil, 2))
	})
	wantOpenError(t, newer, "newer version of the program (layout 2, this one knows 1)")

	foreign := newPath(t)
	edit(t, foreign, func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("theirs"))
		return err
	})
	wantOpenError(t, foreign, "not one of this program")
}

// TestOpenReadsTheFirstLayout writes a file as the first version of this package did.
func TestOpenReadsTheFirstLayout(t *testing.T) {
	path := newPath(t)
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	edit(t, path, func(tx *bbolt.Tx) error {
		meta, err1 := tx.CreateBucket([]byte("meta"))
		kv, err2 := tx.CreateBucket([]byte("kv"))
		logs, err3 := tx.CreateBucket([]byte("logs"))
		log, err4 := logs.CreateBucket([]byte("log"))
		records, err5 := log.CreateBucket([]byte("records"))
		labels, err6 := log.CreateBucket([]byte("labels"))
		return errors.Join(err1, err2, err3, err4, err5, err6,
			meta.Put([]byte("version"), number(1)),
			kv.Put([]byte("k"), append(number(7), "value"...)), kv.SetSequence(9),
			logs.SetSequence(1), log.SetSequence(1),
			records.Put(number(1), []byte("\x05labeldata")), labels.Put(append([]byte("\x00\x05label"), number(1)...), nil))
	})
	s := open(t, path)
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	for r, err := range s.Records(t.Context(), "log", storage.Query{Label: "label"}) {
		if err != nil || string(r.Data) != "data" {
			t.Errorf("the record is %+v (%v)", r, err)
		}
	}
	rev, err := s.Write(t.Context(), storage.Append("log", 1, storage.Record{}), storage.Put("k", nil, 7), storage.Put("other", nil, storage.Absent))
	if err != nil || rev != 10 {
		t.Errorf("Write = %d, %v; want the revision behind 9", rev, err)
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	log := func(tx *bbolt.Tx, part string) *bbolt.Bucket {
		return tx.Bucket([]byte("logs")).Bucket([]byte("log")).Bucket([]byte(part))
	}
	position := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	for _, c := range []struct {
		name, want string
		damage     func(tx *bbolt.Tx) error
	}{
		{"nothing", "", func(*bbolt.Tx) error { return nil }},
		{"a record is missing", "no record at position 7", func(tx *bbolt.Tx) error { return log(tx, "records").Delete(position(7)) }},
		{"a record is garbage", "cannot be decoded", func(tx *bbolt.Tx) error { return log(tx, "records").Put(position(7), []byte{200}) }},
		{"a label is missing", "not in the index", func(tx *bbolt.Tx) error {
			return log(tx, "labels").Delete(append([]byte("\x00\x01l"), position(7)...))
		}},
		{"a label is too many", "201 labels in the index, 200 in the records", func(tx *bbolt.Tx) error {
			return log(tx, "labels").Put(append([]byte("\x00\x01m"), position(7)...), nil)
		}},
		{"a value is too short", "cannot be decoded", func(tx *bbolt.Tx) error { return tx.Bucket([]byte("kv")).Put([]byte("key 1"), []byte("short")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := newPath(t)
			if err := os.WriteFile(path, filled(t), 0o600); err != nil {
				t.Fatal(err)
			}
			edit(t, path, c.damage)
			err := bolt.Verify(t.Context(), path)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Verify: %v, want %q", err, c.want)
			}
		})
	}
}

// TestDamagedPagesAreErrors flips the header of every page in turn: whatever is
// then opened, read, checked and written, the process goes on.
func TestDamagedPagesAreErrors(t *testing.T) {
	good := filled(t)
	dir := t.TempDir()
	for page := 2; page < len(good)/os.Getpagesize(); page++ {
		path, at := filepath.Join(dir, fmt.Sprint(page)), page*os.Getpagesize()
		if err := os.WriteFile(path, flip(good, at, at+8, at+9, at+10), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := bolt.Open(bolt.Config{Path: path, NoSync: true})
		if err != nil {
			continue
		}
		for _, err := range s.Records(t.Context(), "log", storage.Query{Backward: true}) {
			if err != nil {
				break
			}
		}
		for _, err := range s.List(t.Context(), storage.Range{}) {
			if err != nil {
				break
			}
		}
		_ = s.Check(t.Context())
		_ = s.Close()
	}
}
