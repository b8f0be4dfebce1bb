package memory_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"

	"oneclaw/storage"
	"oneclaw/toolgroups/memory"
)

func (b *bench) snapshot(t testing.TB, owner string, began time.Time) string {
	t.Helper()
	notes, err := b.Notes(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	return memory.Snapshot(notes, began)
}

// What is saved after a conversation began does not change the beginning of its
// requests.
func TestSnapshotIsThatOfTheBeginning(t *testing.T) {
	store := openStore(t)
	b := newBench(t, store)
	if got := b.snapshot(t, ada, b.now()); got != "" {
		t.Errorf("snapshot of nothing is %q", got)
	}
	b.save(t, ada, "profile", "Name is Ada")
	began := b.now()
	want := b.snapshot(t, ada, began)
	if !strings.HasPrefix(want, "## Memory\n\n") || !strings.HasSuffix(want, "\n\n## User Profile\n\n- Name is Ada") {
		t.Errorf("snapshot is\n%s", want)
	}
	b.save(t, ada, "profile", "Has a boat")
	if got := b.snapshot(t, ada, began); got != want {
		t.Errorf("snapshot changed to\n%s", got)
	}
	if got := newBench(t, store).snapshot(t, ada, began); got != want {
		t.Errorf("after a restart it is\n%s", got)
	}
	if got := b.snapshot(t, ada, b.now()); !strings.HasSuffix(got, "- Name is Ada\n- Has a boat") {
		t.Errorf("the next conversation has\n%s", got)
	}
	if got := b.snapshot(t, "telegram:2", b.now()); got != "" {
		t.Errorf("another owner's is\n%s", got)
	}
}

func TestSnapshotIsBounded(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"english": "Ada prefers the early train to Cambridge and reads the paper on it, note ",
		"german":  "Die Nutzerin bevorzugt kurze Antworten mit Quellenangaben und Beispielen ",
		"chinese": "用户喜欢简短的回答并且希望看到来源和例子 ",
		"numbers": "0123456789 +49 170 9876543, ",
		"address": "https://example.org/a/b?c=d&e=f#g ",
		"emoji":   "🦀🚀🎉 👩‍👩‍👧 ",
		"lines":   "x\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, openStore(t))
			notes := make([]memory.Note, 300)
			for i := range notes {
				notes[i] = memory.Note{Section: memory.SectionNotes, Text: fmt.Sprint(text, i)}
			}
			data, err := json.Marshal(map[string]any{"notes": notes})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.store.Put(t.Context(), "memory/"+ada, data, storage.Any); err != nil {
				t.Fatal(err)
			}
			got := b.snapshot(t, ada, b.now())
			tokens, err := codec.Count(got)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Count(got, "\n") + 1
			t.Logf("%d characters, %d tokens, %d lines", utf8.RuneCountInString(got), tokens, lines)
			if utf8.RuneCountInString(got) > 8_000 || tokens > 2_000 || lines > 200 {
				t.Errorf("%d characters, %d tokens, %d lines", utf8.RuneCountInString(got), tokens, lines)
			}
			if !strings.Contains(got, "older notes are not shown; search_history") {
				t.Errorf("ends %q", got[len(got)-100:])
			}
		})
	}
}
