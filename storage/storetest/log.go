package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oneclaw/storage"
)

func logProperties() []property {
	return []property{
		{name: "AppendCounts", sentence: "Append numbers the records of each log from 1 without gaps and returns the last position.", check: testAppendCounts, reopened: testAppendCountsReopened},
		{name: "AppendConflicts", sentence: "Append after any position but the last is a conflict and writes nothing.", check: testAppendConflicts},
		{name: "AppendAtomic", sentence: "Append writes all records or none.", check: testAppendAtomic},
		{name: "LogsApart", sentence: "Logs with similar names share nothing.", check: testLogsApart},
		{name: "LabelsApart", sentence: "A query for a label yields only the records with this label, however similar other labels are.", check: testLabelsApart},
		{name: "DropRemovesAll", sentence: "Drop removes records and labels, and the log begins again at 1.", check: testDropRemovesAll},
		{name: "EraseEmpties", sentence: "Erase replaces the labels and data of records by the given ones and leaves all other records unchanged.", check: testEraseEmpties, reopened: testEraseEmptiesReopened},
		{name: "Logs", sentence: "Logs yields the names of the existing logs, and no keys, by range and in byte order.", check: testLogs, shared: true},
		{name: "LogsManyWhileWriting", sentence: "Logs yields exactly once each log that is not changed during the iteration, even if the consumer writes.", check: testLogsManyWhileWriting},
		{name: "DropWhileReading", sentence: "Records never yields records that were appended after a Drop.", check: testDropWhileReading},
		{name: "RecordsOfTheBeginning", sentence: "Records yields the records from when the iteration began, even if the consumer appends.", check: testRecordsOfTheBeginning},
		{name: "RecordsOwnBytes", sentence: "Neither data passed to Append nor data from Records shares memory with the store.", check: testRecordsOwnBytes},
	}
}

func testAppendCounts(t testing.TB, s storage.Store) {
	mustAppend(t, s, "a", 0, record("", "1"))
	mustAppend(t, s, "a", 1, record("x", "2"), record("", ""), record("y", "4"))
	mustAppend(t, s, "b", 0, record("", "other"))
	mustAppend(t, s, "a", 4, record("", "5"))
	appendCountsRead(t, s)
}

func appendCountsRead(t testing.TB, s storage.Store) {
	wantEqual(t, "records of a", readRecords(t, s, "a", storage.Query{}), []storage.Record{
		{Pos: 1, Data: []byte("1")},
		{Pos: 2, Label: "x", Data: []byte("2")},
		{Pos: 3},
		{Pos: 4, Label: "y", Data: []byte("4")},
		{Pos: 5, Data: []byte("5")},
	})
	wantEqual(t, "records of b", readRecords(t, s, "b", storage.Query{}), []storage.Record{{Pos: 1, Data: []byte("other")}})
	wantEqual(t, "records of a log that does not exist", readRecords(t, s, "c", storage.Query{}), []storage.Record{})
}

func testAppendCountsReopened(t testing.TB, s storage.Store) {
	appendCountsRead(t, s)
	mustAppend(t, s, "a", 5, record("x", "6"))
	wantEqual(t, "records labelled x", readRecords(t, s, "a", storage.Query{Label: "x"}), []storage.Record{
		{Pos: 2, Label: "x", Data: []byte("2")}, {Pos: 6, Label: "x", Data: []byte("6")},
	})
}

func testAppendConflicts(t testing.TB, s storage.Store) {
	mustAppend(t, s, "a", 0, record("", "1"), record("", "2"))
	for _, c := range []struct {
		log   string
		after storage.Position
	}{{"a", 0}, {"a", 1}, {"a", 3}, {"a", ^storage.Position(0)}, {"new", 1}, {"new", 2}} {
		_, err := s.Append(t.Context(), c.log, c.after, record("l", "no"))
		wantError(t, fmt.Sprintf("Append(%q, %d)", c.log, c.after), err, storage.ErrConflict)
	}
	if n := len(readRecords(t, s, "a", storage.Query{})); n != 2 {
		t.Errorf("%d records after conflicts, want 2", n)
	}
	wantEqual(t, "labelled records", readRecords(t, s, "a", storage.Query{Label: "l"}), []storage.Record{})
	wantEqual(t, "records of new", readRecords(t, s, "new", storage.Query{}), []storage.Record{})
	mustAppend(t, s, "new", 0, record("", "1"))
}

func testAppendAtomic(t testing.TB, s storage.Store) {
	tooLarge := storage.Record{Data: make([]byte, storage.MaxValue+1)}
	_, err := s.Append(t.Context(), "a", 0, record("l", "1"), tooLarge)
	wantError(t, "Append with one record too large", err, storage.ErrInvalid)
	wantEqual(t, "records", readRecords(t, s, "a", storage.Query{}), []storage.Record{})
	wantEqual(t, "labelled records", readRecords(t, s, "a", storage.Query{Label: "l"}), []storage.Record{})
	mustAppend(t, s, "a", 0, record("l", "1"), record("l", "2"))

	_, err = s.Append(t.Context(), "a", 2)
	wantError(t, "Append of no records", err, storage.ErrInvalid)
}

func testLogsApart(t testing.TB, s storage.Store) {
	names := []string{"a", "a/", "a/b", "a\x00", "a\xff", "A", "ä", "a b", "a.*", "a.>", "\x00", "\xff\xff", "…"}
	for i, name := range names {
		mustAppend(t, s, name, 0, record("l", fmt.Sprint(i)))
	}
	if err := s.Drop(t.Context(), "a"); err != nil {
		t.Fatalf("Drop: %v", err)
	}
	for i, name := range names[1:] {
		wantEqual(t, fmt.Sprintf("records of %q", name), readRecords(t, s, name, storage.Query{Label: "l"}),
			[]storage.Record{{Pos: 1, Label: "l", Data: []byte(fmt.Sprint(i + 1))}})
	}
	wantEqual(t, "records of the dropped log", readRecords(t, s, "a", storage.Query{}), []storage.Record{})
}

func testLabelsApart(t testing.TB, s storage.Store) {
	labels := []string{"a", "ab", "a\x00", "a\x00\x00\x00\x00\x00\x00\x00\x00", "\x00", "\x00a", "\xff", "\xff\xff", "", "a.b", "a.*"}
	var pos storage.Position
	for round := range 3 {
		for _, label := range labels {
			mustAppend(t, s, "log", pos, record(label, fmt.Sprint(round)))
			pos++
		}
	}
	for _, label := range labels {
		if label == "" {
			continue
		}
		got := readRecords(t, s, "log", storage.Query{Label: label})
		if len(got) != 3 {
			t.Errorf("label %q: %d records, want 3", label, len(got))
		}
		for i, r := range got {
			if r.Label != label || string(r.Data) != fmt.Sprint(i) {
				t.Errorf("label %q: record %d is %+v", label, i, r)
			}
		}
	}
	wantEqual(t, "records of an unused label", readRecords(t, s, "log", storage.Query{Label: "b"}), []storage.Record{})
}

func testDropRemovesAll(t testing.TB, s storage.Store) {
	drop := func(log string) {
		t.Helper()
		if err := s.Drop(t.Context(), log); err != nil {
			t.Fatalf("Drop(%q): %v", log, err)
		}
	}
	drop("never was")
	mustAppend(t, s, "a", 0, record("l", "1"), record("l", "2"), record("m", "3"))
	drop("a")
	drop("a")
	wantEqual(t, "records", readRecords(t, s, "a", storage.Query{}), []storage.Record{})
	wantEqual(t, "labelled records", readRecords(t, s, "a", storage.Query{Label: "m"}), []storage.Record{})
	_, err := s.Append(t.Context(), "a", 3, record("", "4"))
	wantError(t, "Append where the dropped log ended", err, storage.ErrConflict)
	mustAppend(t, s, "a", 0, record("m", "again"))
	wantEqual(t, "new records", readRecords(t, s, "a", storage.Query{}), []storage.Record{{Pos: 1, Label: "m", Data: []byte("again")}})
	wantEqual(t, "old label", readRecords(t, s, "a", storage.Query{Label: "l"}), []storage.Record{})
	wantEqual(t, "new label", readRecords(t, s, "a", storage.Query{Label: "m"}), []storage.Record{{Pos: 1, Label: "m", Data: []byte("again")}})
}

func testEraseEmpties(t testing.TB, s storage.Store) {
	erase := func(log string, at ...storage.Position) {
		t.Helper()
		left := make([]storage.Record, len(at))
		for i, pos := range at {
			left[i].Pos = pos
		}
		if err := s.Erase(t.Context(), log, left...); err != nil {
			t.Fatalf("Erase(%q, %v): %v", log, at, err)
		}
	}
	erase("never was", 1)
	mustAppend(t, s, "a", 0, record("l", "1"), record("", "2"), record("l", "3"), record("m", "4"))
	mustAppend(t, s, "b", 0, record("l", "other"))
	erase("a", 1, 4, 9, 0, ^storage.Position(0))
	erase("a", 1)
	erase("a")
	long := storage.Record{Pos: 1, Label: strings.Repeat("l", storage.MaxKey+1)}
	wantError(t, "Erase that leaves a label that is too long", s.Erase(t.Context(), "a", long), storage.ErrInvalid)
	wantError(t, "Erase in a log without a name", s.Erase(t.Context(), "", storage.Record{Pos: 1}), storage.ErrInvalid)
	testEraseEmptiesReopened(t, s)
	_, err := s.Append(t.Context(), "a", 3, record("", "5"))
	wantError(t, "Append before an erased record", err, storage.ErrConflict)
	mustAppend(t, s, "a", 4, record("m", "5"))
	wantEqual(t, "a label of an erased record", readRecords(t, s, "a", storage.Query{Label: "m"}), []storage.Record{{Pos: 5, Label: "m", Data: []byte("5")}})
	erase("a", 5)
	mustAppend(t, s, "c", 0, record("l", "1"), record("l", "2"), record("", "3"))
	left := []storage.Record{{Pos: 2, Label: "l", Data: []byte("left")}, {Pos: 1, Label: "m", Data: []byte("other")}, {Pos: 3}, {Pos: 4, Label: "l"}}
	for range 2 {
		if err := s.Erase(t.Context(), "c", left...); err != nil {
			t.Fatalf("Erase that leaves something: %v", err)
		}
		wantEqual(t, "what is left", readRecords(t, s, "c", storage.Query{}), []storage.Record{left[1], left[0], {Pos: 3}})
		wantEqual(t, "what is left under its label", readRecords(t, s, "c", storage.Query{Label: "l"}), left[:1])
	}
}

func testEraseEmptiesReopened(t testing.TB, s storage.Store) {
	all := readRecords(t, s, "a", storage.Query{Before: 5})
	wantEqual(t, "records", all, []storage.Record{{Pos: 1}, {Pos: 2, Data: []byte("2")}, {Pos: 3, Label: "l", Data: []byte("3")}, {Pos: 4}})
	wantEqual(t, "a label", readRecords(t, s, "a", storage.Query{Label: "l"}), []storage.Record{{Pos: 3, Label: "l", Data: []byte("3")}})
	wantEqual(t, "another label", readRecords(t, s, "a", storage.Query{Label: "m"}), []storage.Record{})
	wantEqual(t, "another log", readRecords(t, s, "b", storage.Query{}), []storage.Record{{Pos: 1, Label: "l", Data: []byte("other")}})
}

// readLogs returns the names of the logs in a range.
func readLogs(t testing.TB, s storage.Store, r storage.Range) []string {
	t.Helper()
	var names []string
	for name, err := range s.Logs(t.Context(), r) {
		if err != nil {
			t.Fatalf("Logs(%+v) after %d names: %v", r, len(names), err)
		}
		names = append(names, name)
	}
	return names
}

func testLogs(t testing.TB, s storage.Store) {
	mustPut(t, s, "a key", "", storage.Absent)
	mustAppend(t, s, "a dropped log", 0, record("", "x"))
	if err := s.Drop(t.Context(), "a dropped log"); err != nil {
		t.Fatalf("Drop: %v", err)
	}
	wantEqual(t, "logs", readLogs(t, s, storage.Range{}), []string{})
	for _, i := range []int{3, 0, 7, 5, 1, 6, 2, 4} {
		mustAppend(t, s, someKeys[i], 0, record("", "x"))
	}
	for _, c := range rangeCases() {
		wantEqual(t, fmt.Sprintf("Logs(%+v)", c.r), readLogs(t, s, c.r), c.want)
	}
}

func testLogsManyWhileWriting(t testing.TB, s storage.Store) {
	const dropped, made = "l0650", "l0000x"
	var want []string
	for i := range manyItems {
		name := fmt.Sprintf("l%04d", i)
		mustAppend(t, s, name, 0, record("", "x"))
		if name != dropped {
			want = append(want, name)
		}
	}
	var got []string
	for name, err := range s.Logs(t.Context(), storage.Range{Prefix: "l"}) {
		if err != nil {
			t.Fatalf("Logs: %v", err)
		}
		if name != dropped && name != made {
			got = append(got, name)
		}
		if name == "l0000" {
			if err := s.Drop(t.Context(), dropped); err != nil {
				t.Fatalf("Drop: %v", err)
			}
			mustAppend(t, s, made, 0, record("", "x"))
		}
	}
	wantEqual(t, "unchanged logs", got, want)
}

// manyItems is more than an engine reads at once.
const manyItems = 700

func manyRecords(label, data string) []storage.Record {
	records := make([]storage.Record, manyItems)
	for i := range records {
		records[i] = record(label, data)
	}
	return records
}

func testDropWhileReading(t testing.TB, s storage.Store) {
	for i, q := range []storage.Query{{}, {Label: "l"}, {Backward: true}, {Label: "l", Backward: true}} {
		log := fmt.Sprint("log", i)
		mustAppend(t, s, log, 0, manyRecords("l", "old")...)
		n := 0
		for r, err := range s.Records(t.Context(), log, q) {
			if err != nil {
				wantError(t, "Records of a log dropped meanwhile", err, storage.ErrNotFound)
				n = manyItems
				break
			}
			if string(r.Data) != "old" {
				t.Fatalf("%+v: record %d yields %q, which was appended after the drop", q, r.Pos, r.Data)
			}
			if n++; n == 1 {
				if err := s.Drop(t.Context(), log); err != nil {
					t.Fatalf("Drop: %v", err)
				}
				mustAppend(t, s, log, 0, append(manyRecords("l", "new"), record("l", "new"))...)
			}
		}
		if n != manyItems {
			t.Fatalf("%+v: ended without an error after %d of %d records", q, n, manyItems)
		}
	}
}

func testRecordsOfTheBeginning(t testing.TB, s storage.Store) {
	mustAppend(t, s, "a", 0, manyRecords("l", "old")...)
	last := storage.Position(manyItems)
	for _, q := range []storage.Query{{}, {Label: "l"}, {Backward: true}, {Label: "l", Backward: true}} {
		want, n := int(last), 0
		for r, err := range s.Records(t.Context(), "a", q) {
			if err != nil {
				t.Fatalf("Records: %v", err)
			}
			if n++; n%350 == 1 {
				mustAppend(t, s, "a", last, record("l", "new"))
				last++
			}
			if int(r.Pos) > want {
				t.Fatalf("%+v: yields record %d, which was appended during the iteration", q, r.Pos)
			}
		}
		if n != want {
			t.Errorf("%+v: %d records, want %d", q, n, want)
		}
	}
	for _, err := range s.Records(t.Context(), "a", storage.Query{}) {
		if err != nil {
			t.Fatalf("Records: %v", err)
		}
		break // the next read must not miss the rest
	}
	mustAppend(t, s, "a", last, record("", "on"))
}

func testRecordsOwnBytes(t testing.TB, s storage.Store) {
	data := []byte("data")
	mustAppend(t, s, "a", 0, storage.Record{Data: data})
	copy(data, "XXXX")
	for range 2 {
		got := readRecords(t, s, "a", storage.Query{})
		wantEqual(t, "records", got, []storage.Record{{Pos: 1, Data: []byte("data")}})
		copy(got[0].Data, "YYYY")
		_ = append(got[0].Data[:0], "ZZZZZZZZ"...)
	}
}

func testLargeRecords(t testing.TB, s storage.Store) {
	large := make([]byte, storage.MaxValue)
	for i := range large {
		large[i] = byte(i * 7)
	}
	want := []storage.Record{
		{Pos: 1, Label: "l", Data: large}, {Pos: 2, Label: "l", Data: []byte("small")}, {Pos: 3, Label: "l", Data: large},
	}
	mustAppend(t, s, "a", 0, want[0])
	mustAppend(t, s, "a", 1, want[1], want[2])
	for _, q := range []storage.Query{{}, {Label: "l"}} {
		got := readRecords(t, s, "a", q)
		if !slices.EqualFunc(got, want, sameRecord) {
			t.Fatalf("%+v: %d records, not those that were appended", q, len(got))
		}
	}
	// A consumer that stops must not block later writes.
	var err error
	for _, err = range s.Records(t.Context(), "a", storage.Query{Backward: true}) {
		break
	}
	if errors.Join(err, s.Drop(t.Context(), "a")) != nil {
		t.Fatalf("Records and Drop: %v", err)
	}
}

// sameRecord reports whether two records are equal, for data that is too large for a readable diff.
func sameRecord(a, b storage.Record) bool {
	return a.Pos == b.Pos && a.Label == b.Label && bytes.Equal(a.Data, b.Data)
}
