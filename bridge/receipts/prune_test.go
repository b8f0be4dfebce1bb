package receipts_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// meddled is a store in which somebody changes a receipt right before it is removed.
type meddled struct {
	storage.Store

	meddle func()
	writes int
}

func (m *meddled) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if m.meddle != nil {
		m.meddle()
		m.meddle = nil
	}
	m.writes++
	return m.Store.Write(ctx, ops...)
}

// What is too old goes, many receipts with one write, and what has changed meanwhile is read again.
func TestPruneRemovesManyWithOneWrite(t *testing.T) {
	t.Parallel()
	engine, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	store := &meddled{Store: engine}
	const old, young = 520, 30
	for i := range old + young {
		closed := now.Add(-receipts.Age - time.Duration(i+1)*time.Second)
		if i >= old {
			closed = now.Add(-time.Duration(i) * time.Second)
		}
		m := chats.Message{Chat: chats.Chat{Platform: "telegram", ID: "5"}, ID: fmt.Sprintf("%04d", i), Kind: chats.KindText}
		if err := receipts.Put(t.Context(), store, &receipts.Receipt{Message: m, State: receipts.Done, Closed: closed}, storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (n int) {
		t.Helper()
		for _, prefix := range []string{receipts.Prefix, "finished/"} {
			for _, err := range engine.List(t.Context(), storage.Range{Prefix: prefix}) {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
		}
		return n
	}
	store.writes, store.meddle = 0, func() {
		key := receipts.Prefix + "telegram:5/0007/text"
		entry, err := engine.Get(t.Context(), key)
		if err == nil {
			_, err = engine.Put(t.Context(), key, entry.Value, entry.Revision)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []struct{ removed, left int }{{old, 2 * young}, {0, 2 * young}} {
		removed, err := receipts.Prune(t.Context(), store, now, nil)
		if got := left(); err != nil || removed != want.removed || got != want.left {
			t.Errorf("%d are removed, %d are left, %v; want %d and %d", removed, got, err, want.removed, want.left)
		}
	}
	// The hundred of the group with the changed one are written one by one.
	if store.writes > 115 {
		t.Errorf("%d writes remove %d entries", store.writes, 2*old)
	}
}

// counted counts the rows that are read.
type counted struct {
	storage.Store

	rows int
}

func (c *counted) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	return func(yield func(storage.Entry, error) bool) {
		for entry, err := range c.Store.List(ctx, r) {
			if c.rows++; !yield(entry, err) {
				return
			}
		}
	}
}

func (c *counted) Get(ctx context.Context, key string) (storage.Entry, error) {
	c.rows++
	return c.Store.Get(ctx, key)
}

// fill closes jobs at even intervals during the time before now. Each fourth is a press, which no list shows.
func fill(tb testing.TB, store storage.Store, n int, now time.Time, during time.Duration) {
	tb.Helper()
	var ops []storage.Op
	for i := range n {
		m := chats.Message{Chat: chats.Chat{Platform: "telegram", ID: fmt.Sprint(i * 7919 % 5000)}, ID: fmt.Sprintf("%08d", i), Kind: chats.KindText, Text: strings.Repeat("words ", 20)}
		if i%4 == 0 {
			m.Kind = chats.KindPress
		}
		closed := now.Add(-during / time.Duration(n) * time.Duration(i))
		some, err := (&receipts.Receipt{Message: m, State: receipts.Done, Accepted: closed.Add(-time.Second), Closed: closed}).Ops(storage.Absent)
		if ops = append(ops, some...); err == nil && (len(ops) >= 2000 || i == n-1) {
			_, err = store.Write(tb.Context(), ops...)
			ops = nil
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func open(tb testing.TB) *counted {
	tb.Helper()
	engine, err := bolt.Open(bolt.Config{Path: filepath.Join(tb.TempDir(), "db"), NoSync: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = engine.Close() })
	return &counted{Store: engine}
}

// Of receipts that no list shows, those whose keys are too long for the index, and those from the future,
// none stays longer than its age.
func TestPruneFindsEachReceipt(t *testing.T) {
	t.Parallel()
	store, now := open(t), time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for i, m := range []chats.Message{
		{ID: "1", Kind: chats.KindText},
		{ID: "2", Kind: chats.KindPress},
		{ID: strings.Repeat("3", storage.MaxKey-len(receipts.Prefix)-len("telegram:5//text")), Kind: chats.KindText},
	} {
		for ahead, closed := range []time.Time{now.Add(-receipts.Age - time.Minute), now.Add(2 * receipts.Age)} {
			m.Chat = chats.Chat{Platform: "telegram", ID: fmt.Sprint(2*i + ahead)}
			if err := receipts.Put(t.Context(), store, &receipts.Receipt{Message: m, State: receipts.Done, Closed: closed}, storage.Absent); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, wait := range []time.Duration{0, receipts.Age, time.Second} {
		now = now.Add(wait)
		removed, err := receipts.Prune(t.Context(), store, now, nil)
		if want := map[time.Duration]int{0: 3, time.Second: 3}[wait]; err != nil || removed != want {
			t.Errorf("after %v, %d are removed, %v; want %d", wait, removed, err, want)
		}
	}
	for entry, err := range store.List(t.Context(), storage.Range{}) {
		if entry.Key != "sweep" || err != nil {
			t.Errorf("%s is left, %v", entry.Key, err)
		}
	}
}

// Of many receipts, a pruning reads those of an hour, and a bounded number of others.
func TestPruneReadsWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, readsWhatIsDue)
}

func readsWhatIsDue(t *testing.T) {
	store, now := open(t), time.Date(2026, 3, 10, 12, 30, 0, 0, time.UTC)
	const perHour = 240
	fill(t, store, 168*perHour, now, receipts.Age)
	if _, err := receipts.Prune(t.Context(), store, now, nil); err != nil {
		t.Fatal(err)
	}
	store.rows = 0
	removed, err := receipts.Prune(t.Context(), store, now.Add(time.Hour), nil)
	if err != nil || removed < perHour-1 || removed > perHour+1 {
		t.Errorf("%d of an hour's %d are removed, %v", removed, perHour, err)
	}
	if most := 20_000 + 6*perHour; store.rows > most {
		t.Errorf("%d rows are read, at most %d are due", store.rows, most)
	}
}

// BenchmarkPrune is one hourly pruning of a week's receipts.
func BenchmarkPrune(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			store, now := open(b), time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
			fill(b, store, n, now, receipts.Age)
			prune := func() {
				if now = now.Add(time.Hour); b.N > 160 {
					b.Skip("nothing is left")
				}
				if _, err := receipts.Prune(b.Context(), store, now, nil); err != nil {
					b.Fatal(err)
				}
			}
			prune()
			store.rows = 0
			before := used(b)
			for b.Loop() {
				prune()
			}
			b.ReportMetric(float64(store.rows)/float64(b.N), "rows/op")
			b.ReportMetric((used(b)-before)/float64(b.N), "cpu-ms/op")
		})
	}
}

// used is the processor time of this process so far, in milliseconds.
func used(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}
