package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

func TestBackupIsAStore(t *testing.T) {
	path := newPath(t)
	if err := os.WriteFile(path, filled(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if s.Path() != path {
		t.Errorf("Path() = %q, want %q", s.Path(), path)
	}
	var b bytes.Buffer
	if err := s.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "later", nil, storage.Absent); err != nil {
		t.Fatal(err)
	}
	copied := newPath(t)
	if err := os.WriteFile(copied, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, copied)
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
	n := 0
	for _, err := range c.Records(t.Context(), "log", storage.Query{Label: "l"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 200 {
		t.Errorf("%d records in the backup, want 200", n)
	}
	if _, err := c.Get(t.Context(), "later"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Get of a key written after the backup: %v", err)
	}
}

func TestBackupEndsWithItsContext(t *testing.T) {
	s := open(t, newPath(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := s.Backup(ctx, writerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Backup: %v, want %v", err, context.Canceled)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestSlowWatcherLags fills the queue of a watch.
func TestSlowWatcherLags(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t))
	seq := s.Watch(t.Context(), "")
	const writes = 5
	for range writes {
		if _, err := s.Put(t.Context(), "k", make([]byte, storage.MaxValue), storage.Any); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	var last error
	for _, last = range seq {
		n++
	}
	if !errors.Is(last, storage.ErrLagged) || n < 3 || n > writes {
		t.Errorf("%d of %d events, then %v; want fewer, then ErrLagged", n-1, writes, last)
	}
}

func TestWatchIsIteratedOnce(t *testing.T) {
	s := open(t, newPath(t))
	seq := s.Watch(t.Context(), "")
	if _, err := s.Put(t.Context(), "k", nil, storage.Any); err != nil {
		t.Fatal(err)
	}
	for _, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	for _, err := range seq {
		if err == nil {
			t.Fatal("a second iteration yields an event")
		}
	}
}

func TestErrorsDoNotRepeatKeys(t *testing.T) {
	s := open(t, newPath(t))
	const secret = "token-0123456789"
	_, getErr := s.Get(t.Context(), secret)
	_, putErr := s.Put(t.Context(), secret, nil, 5)
	for _, err := range []error{getErr, putErr, s.Delete(t.Context(), secret, 5)} {
		if err == nil || bytes.Contains([]byte(err.Error()), []byte(secret)) {
			t.Errorf("error %v", err)
		}
	}
}

func benchmarkStore(b *testing.B, sync bool) *bolt.Store {
	b.Helper()
	s, err := bolt.Open(bolt.Config{Path: newPath(b), NoSync: !sync})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func BenchmarkPut(b *testing.B) {
	s := benchmarkStore(b, true)
	value := make([]byte, 300)
	for i := 0; b.Loop(); i++ {
		if _, err := s.Put(b.Context(), fmt.Sprint("k", i%1000), value, storage.Any); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPut100AtOnce(b *testing.B) {
	s := benchmarkStore(b, true)
	value := make([]byte, 300)
	b.SetParallelism(50) // times GOMAXPROCS
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := s.Put(b.Context(), fmt.Sprint("k", i%1000), value, storage.Any); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	s := benchmarkStore(b, true)
	var pos storage.Position
	for b.Loop() {
		var err error
		if pos, err = s.Append(b.Context(), "log", pos, storage.Record{Data: make([]byte, 300)}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	s := benchmarkStore(b, false)
	if _, err := s.Put(b.Context(), "k", make([]byte, 300), storage.Any); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Get(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecords reads from logs of which every thousandth record has a label.
func BenchmarkRecords(b *testing.B) {
	for _, size := range []int{10_000, 100_000} {
		s := benchmarkStore(b, false)
		records := make([]storage.Record, size)
		for i := range records {
			records[i].Data = make([]byte, 300)
			if i%1000 == 500 {
				records[i].Label = "load"
			}
		}
		if _, err := s.Append(b.Context(), "log", 0, records...); err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name string
			q    storage.Query
			want int
		}{
			{"label", storage.Query{Label: "load"}, size / 1000},
			{"last200", storage.Query{Backward: true, Limit: 200}, 200},
			{"all", storage.Query{}, size},
		} {
			b.Run(fmt.Sprintf("%s/of=%d", c.name, size), func(b *testing.B) {
				for b.Loop() {
					n := 0
					for _, err := range s.Records(b.Context(), "log", c.q) {
						if err != nil {
							b.Fatal(err)
						}
						n++
					}
					if n != c.want {
						b.Fatalf("%d records, want %d", n, c.want)
					}
				}
			})
		}
	}
}
