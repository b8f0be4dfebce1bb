package documents

import (
	"testing"

	"oneclaw/toolgroups/documents/office"
)

func TestSelections(t *testing.T) {
	for _, tc := range []struct {
		text string
		want selection
	}{
		{"", selection{all: true, to: place{lastNumber, lastNumber}}},
		{" 3 ", selection{from: place{3, 1}, to: place{3, lastNumber}, name: "3"}},
		{"2-5", selection{from: place{2, 1}, to: place{5, lastNumber}, name: "2-5"}},
		{"2-", selection{from: place{2, 1}, to: place{lastNumber, lastNumber}, name: "2-"}},
		{"3:40", selection{from: place{3, 40}, to: place{3, 40}, name: "3:40"}},
		{"3:40-", selection{from: place{3, 40}, to: place{lastNumber, lastNumber}, name: "3:40-"}},
		{"3:40-5", selection{from: place{3, 40}, to: place{5, lastNumber}, name: "3:40-5"}},
		{"3:40-3:60", selection{from: place{3, 40}, to: place{3, 60}, name: "3:40-3:60"}},
		{"Costs", selection{from: place{0, 1}, to: place{0, lastNumber}, name: "Costs"}},
		{"Costs:5-20", selection{from: place{0, 5}, to: place{0, 20}, name: "Costs"}},
		{"Costs:5", selection{from: place{0, 5}, to: place{0, 5}, name: "Costs"}},
		{"Costs:5-", selection{from: place{0, 5}, to: place{0, lastNumber}, name: "Costs"}},
		{"'My Costs'!A5:$F$20", selection{from: place{0, 5}, to: place{0, 20}, name: "My Costs"}},
		{"Costs!B7", selection{from: place{0, 7}, to: place{0, 7}, name: "Costs"}},
		{"Part 1: Spring", selection{from: place{0, 1}, to: place{0, lastNumber}, name: "Part 1: Spring"}},
	} {
		if got, err := parseSelection(tc.text); err != nil || got != tc.want {
			t.Errorf("%q: %+v, %v; want %+v", tc.text, got, err, tc.want)
		}
	}
	for _, text := range []string{"5-2", "3:9-3:2", "Costs:9-2", "a\nb"} {
		if got, err := parseSelection(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestWhatASelectionHolds(t *testing.T) {
	for _, tc := range []struct {
		text         string
		part         office.Part
		block        int
		whole, wants bool
	}{
		{"", office.Part{Number: 9}, 9, true, true},
		{"2-3", office.Part{Number: 3}, 9, true, true},
		{"2-3", office.Part{Number: 4}, 1, false, false},
		{"2:5-3:2", office.Part{Number: 2}, 4, true, false},
		{"2:5-3:2", office.Part{Number: 2}, 5, true, true},
		{"2:5-3:2", office.Part{Number: 3}, 3, true, false},
		{"2026", office.Part{Number: 1, Name: "2026"}, 7, true, true},
		{"costs", office.Part{Number: 4, Name: "Costs"}, 7, true, true},
		{"costs:8-", office.Part{Number: 4, Name: "Costs"}, 7, true, false},
		{"costs", office.Part{Number: 4, Name: "Old costs"}, 7, false, false},
	} {
		s, err := parseSelection(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		if whole := s.includesPart(tc.part); whole != tc.whole || whole && s.includesBlock(tc.part, tc.block) != tc.wants {
			t.Errorf("%q of %+v, %d: part %t, block %t", tc.text, tc.part, tc.block, whole, s.includesBlock(tc.part, tc.block))
		}
	}
}
