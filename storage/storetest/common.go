package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
)

func commonProperties() []property {
	return []property{
		{name: "Limits", sentence: "Empty, too long and negative arguments are rejected with ErrInvalid; arguments just within the limits are accepted.", check: testLimits},
		{name: "ConcurrentAppends", sentence: "Goroutines that append concurrently with compare-and-set lose nothing and leave no gap.", check: testConcurrentAppends, shared: true},
		{name: "ConcurrentPuts", sentence: "Goroutines that count up one key concurrently with compare-and-set lose no step.", check: testConcurrentPuts, shared: true},
		{name: "ConflictsStayAlone", sentence: "Of many concurrent writes all without a conflict succeed, and of those over the same version exactly one.", check: testConflictsStayAlone, shared: true},
		{name: "Linearizable", sentence: "The results of concurrent calls can be explained by some order of the calls that keeps the order of consecutive ones.", check: testLinearizable, shared: true},
		{name: "Cancelled", sentence: "With an ended context nothing is written, and the error is that of the context.", check: testCancelled},
		{name: "CancelledWhileReading", sentence: "An iteration ends with the error of its context when the context ends.", check: testCancelledWhileReading},
		{name: "Closed", sentence: "After Close every call returns ErrClosed, and another Close does nothing.", check: testClosed},
		{name: "ClosedWhileReading", sentence: "Close lets a running iteration end, with ErrClosed if there was more to read.", check: testClosedWhileReading},
		{name: "LargeRecords", sentence: "Records of the maximum size are stored and read completely.", check: testLargeRecords},
	}
}

// callAll calls every method but Watch and Close once, with valid arguments, and returns the
// errors.
func callAll(ctx context.Context, s storage.Store) map[string]error {
	errs := map[string]error{}
	_, errs["Append"] = s.Append(ctx, "calls", 0, record("l", "x"))
	_, errs["Put"] = s.Put(ctx, "calls", []byte("x"), storage.Any)
	_, errs["Get"] = s.Get(ctx, "calls")
	_, errs["Write"] = s.Write(ctx, storage.Put("written", nil, storage.Any))
	for _, err := range s.Records(ctx, "calls", storage.Query{}) {
		errs["Records"] = errors.Join(errs["Records"], err)
	}
	for _, err := range s.List(ctx, storage.Range{}) {
		errs["List"] = errors.Join(errs["List"], err)
	}
	for _, err := range s.Logs(ctx, storage.Range{}) {
		errs["Logs"] = errors.Join(errs["Logs"], err)
	}
	errs["Erase"] = s.Erase(ctx, "calls", storage.Record{Pos: 1})
	errs["Delete"] = s.Delete(ctx, "calls", storage.Any)
	errs["Drop"] = s.Drop(ctx, "calls")
	return errs
}

func firstError[T any](seq func(func(T, error) bool)) (first error) {
	seq(func(_ T, err error) bool {
		first = err
		return err == nil
	})
	return first
}

func testLimits(t testing.TB, s storage.Store) {
	long, longer := strings.Repeat("n", storage.MaxKey), strings.Repeat("n", storage.MaxKey+1)
	big := make([]byte, storage.MaxValue+1)
	ctx := t.Context()
	for _, name := range []string{"", longer} {
		_, appendErr := s.Append(ctx, name, 0, record("", "x"))
		_, putErr := s.Put(ctx, name, nil, storage.Any)
		_, getErr := s.Get(ctx, name)
		_, writeErr := s.Write(ctx, storage.Put("fine", nil, storage.Any), storage.Check(name, storage.Absent))
		for what, err := range map[string]error{
			"Append": appendErr, "Put": putErr, "Get": getErr, "Write": writeErr,
			"Records": firstError(s.Records(ctx, name, storage.Query{})),
			"Drop":    s.Drop(ctx, name), "Delete": s.Delete(ctx, name, storage.Any),
		} {
			wantError(t, fmt.Sprintf("%s with a name of %d bytes", what, len(name)), err, storage.ErrInvalid)
		}
	}
	_, err := s.Append(ctx, "log", 0, record(longer, "x"))
	wantError(t, "Append with a long label", err, storage.ErrInvalid)
	_, err = s.Append(ctx, "log", 0, storage.Record{Data: big})
	wantError(t, "Append of too much", err, storage.ErrInvalid)
	_, err = s.Put(ctx, "k", big, storage.Any)
	wantError(t, "Put of too much", err, storage.ErrInvalid)
	wantError(t, "List with a negative limit", firstError(s.List(ctx, storage.Range{Limit: -1})), storage.ErrInvalid)
	wantError(t, "Logs with a negative limit", firstError(s.Logs(ctx, storage.Range{Limit: -1})), storage.ErrInvalid)
	wantError(t, "Records with a negative limit", firstError(s.Records(ctx, "log", storage.Query{Limit: -1})), storage.ErrInvalid)

	mustAppend(t, s, long, 0, storage.Record{Label: long, Data: big[1:]})
	if got := readRecords(t, s, long, storage.Query{Label: long}); len(got) != 1 || len(got[0].Data) != storage.MaxValue {
		t.Errorf("Records with the longest name and label: %d records", len(got))
	}
	mustPut(t, s, long, "v", storage.Absent)
	wantEqual(t, "keys with the longest prefix", keysOf(listEntries(t, s, storage.Range{Prefix: long})), []string{long})
}

func testConcurrentAppends(t testing.TB, s storage.Store) {
	const writers, writes = 8, 10
	ctx, cancel := withPatience(t)
	defer cancel()
	var g errgroup.Group
	for w := range writers {
		g.Go(func() error {
			after := storage.Position(0)
			for i := range writes {
				var err error
				if after, err = appendAnywhere(ctx, s, after, record(fmt.Sprint(w), fmt.Sprintf("%d/%d", w, i))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("Append: %v", err)
	}
	for i, r := range readRecords(t, s, "log", storage.Query{}) {
		if r.Pos != storage.Position(i+1) {
			t.Fatalf("position %d follows %d", r.Pos, i)
		}
	}
	for w := range writers {
		var want []string
		for i := range writes {
			want = append(want, fmt.Sprintf("%d/%d", w, i))
		}
		var got []string
		for _, r := range readRecords(t, s, "log", storage.Query{Label: fmt.Sprint(w)}) {
			got = append(got, string(r.Data))
		}
		wantEqual(t, fmt.Sprint("records of writer ", w), got, want)
	}
}

// appendAnywhere appends a record after the current last one.
func appendAnywhere(ctx context.Context, s storage.Store, after storage.Position, r storage.Record) (storage.Position, error) {
	for {
		pos, err := s.Append(ctx, "log", after, r)
		if !errors.Is(err, storage.ErrConflict) {
			return pos, err
		}
		for last, err := range s.Records(ctx, "log", storage.Query{Backward: true, Limit: 1}) {
			if err != nil {
				return 0, err
			}
			after = last.Pos
		}
	}
}

func testConcurrentPuts(t testing.TB, s storage.Store) {
	const writers, writes = 8, 10
	ctx, cancel := withPatience(t)
	defer cancel()
	mustPut(t, s, "count", "0", storage.Absent)
	var g errgroup.Group
	for range writers {
		g.Go(func() error {
			for done := 0; done < writes; {
				e, err := s.Get(ctx, "count")
				if err != nil {
					return err
				}
				var n int
				if _, err := fmt.Sscan(string(e.Value), &n); err != nil {
					return err
				}
				_, err = s.Put(ctx, "count", []byte(fmt.Sprint(n+1)), e.Revision)
				if err == nil {
					done++
				} else if !errors.Is(err, storage.ErrConflict) {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("counting: %v", err)
	}
	if e, err := s.Get(t.Context(), "count"); err != nil || string(e.Value) != fmt.Sprint(writers*writes) {
		t.Errorf("count is %s (%v), want %d", e.Value, err, writers*writes)
	}
}

func testConflictsStayAlone(t testing.TB, s storage.Store) {
	const n = 30
	ctx, cancel := withPatience(t)
	defer cancel()
	won := make([]bool, n)
	var g errgroup.Group
	for i := range n {
		g.Go(func() error {
			_, err := s.Put(ctx, "one", []byte(fmt.Sprint(i)), storage.Absent)
			won[i] = err == nil
			if errors.Is(err, storage.ErrConflict) {
				return nil
			}
			return err
		})
		g.Go(func() error {
			_, err := s.Put(ctx, fmt.Sprint("own ", i), nil, storage.Absent)
			return err
		})
		g.Go(func() error {
			_, err := s.Append(ctx, fmt.Sprint("log ", i), 0, record("", "x"))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("a write without a conflict: %v", err)
	}
	e, err := s.Get(t.Context(), "one")
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	for i, w := range won {
		if w != (string(e.Value) == fmt.Sprint(i)) {
			t.Errorf("the result for writer %d was %t, but the value is that of writer %s", i, w, e.Value)
		}
	}
	if got := len(listEntries(t, s, storage.Range{Prefix: "own "})); got != n {
		t.Errorf("%d keys of their own, want %d", got, n)
	}
}

func testCancelled(t testing.TB, s storage.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range callAll(ctx, s) {
		wantError(t, what+" with an ended context", err, context.Canceled)
	}
	if got := listEntries(t, s, storage.Range{}); len(got) != 0 {
		t.Errorf("keys %q were written", keysOf(got))
	}
	mustAppend(t, s, "calls", 0, record("", "x"))
}

func testCancelledWhileReading(t testing.TB, s storage.Store) {
	mustAppend(t, s, "a", 0, record("", "1"), record("", "2"), record("", "3"))
	mustPut(t, s, "k1", "", storage.Any)
	mustPut(t, s, "k2", "", storage.Any)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs []error
	for _, err := range s.Records(ctx, "a", storage.Query{}) {
		errs = append(errs, err)
		cancel()
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	for _, err := range s.List(ctx, storage.Range{}) {
		errs = append(errs, err)
		cancel()
	}
	if len(errs) != 4 {
		t.Fatalf("two cancelled iterations yield %v; want an item and an error each", errs)
	}
	wantError(t, "cancelled Records", errs[1], context.Canceled)
	wantError(t, "cancelled List", errs[3], context.Canceled)
}

func testClosed(t testing.TB, s storage.Store) {
	open := callAll(t.Context(), s)
	for what, err := range open {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	closeStore(t, s)
	closeStore(t, s)
	got := callAll(t.Context(), s)
	if len(got) != len(open) {
		t.Fatalf("after Close only these calls have an error: %v", got)
	}
	for what, err := range got {
		wantError(t, what+" after Close", err, storage.ErrClosed)
	}
}

func testClosedWhileReading(t testing.TB, s storage.Store) {
	mustAppend(t, s, "a", 0, manyRecords("", "x")...)
	n := 0
	var last error
	for _, err := range s.Records(t.Context(), "a", storage.Query{}) {
		if last = err; err != nil {
			break
		}
		if n++; n == 1 {
			closeStore(t, s)
		}
	}
	if n != manyItems || last != nil {
		wantError(t, fmt.Sprintf("Records over a Close, after %d of %d records", n, manyItems), last, storage.ErrClosed)
	}
}
