package memory_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"oneclaw/toolgroups/memory"
)

// Notes from elsewhere are saved once, as far as they fit, and a look in advance says the same.
func TestNotesAreImportedOnce(t *testing.T) {
	t.Parallel()
	m, err := memory.New(memory.Config{Now: time.Now, Store: openStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	notes := []memory.Note{
		{Section: memory.SectionProfile, Text: "Name: Ann"}, {Section: "moon", Text: "a note"}, {Text: "A  NOTE"}, {Text: " "}, {Text: strings.Repeat("x", memory.MaxNoteLength+1)},
	}
	for i := range memory.MaxText / memory.MaxNoteLength {
		notes = append(notes, memory.Note{Text: strings.Repeat(string(rune(0x4E00+i)), memory.MaxNoteLength)})
	}
	want := map[int]error{2: memory.ErrDuplicate, 3: memory.ErrInvalid, 4: memory.ErrInvalid, len(notes) - 1: memory.ErrFull}
	for _, write := range []bool{false, true} {
		reasons, err := m.Import(t.Context(), ada, notes, write)
		if err != nil {
			t.Fatal(err)
		}
		for i, reason := range reasons {
			if !errors.Is(reason, want[i]) || want[i] == nil && reason != nil {
				t.Errorf("write %t: note %d: %v, want %v", write, i, reason, want[i])
			}
		}
	}
	reasons, err := m.Import(t.Context(), ada, notes[:2], true)
	if err != nil || !errors.Is(reasons[0], memory.ErrDuplicate) || !errors.Is(reasons[1], memory.ErrDuplicate) {
		t.Errorf("again: %v, %v", reasons, err)
	}
	kept, err := m.Notes(t.Context(), ada)
	if err != nil || len(kept) != len(notes)-4 {
		t.Errorf("%d notes, %v", len(kept), err)
	}
	for _, n := range kept {
		if !n.IsOthers(ada, true) || n.WasShownTo(ada) {
			t.Errorf("%q counts as the person's own words, or as shown to them", n.Text)
		}
	}
}
