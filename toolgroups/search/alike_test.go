package search

import (
	"testing"

	"oneclaw/toolgroups/search/meaning"
)

// The nearest line counts, brands one way, and no word stands for itself.
func TestAlike(t *testing.T) {
	for _, c := range []struct {
		word, other string
		near        float64
	}{
		{"delete", "remove", 1},
		{"remove", "delete", 1},
		{"mail", "message", 0},
		{"invoice", "bill", 1},
		{"hotel", "trip", 0.5},
		{"spotify", "music", 0.7},
		{"music", "spotify", 0},
		{"image", "photo", 1},
		{"create", "create", 0},
	} {
		got := 0.0
		for _, k := range loadSynonyms()[meaning.Stem(c.word)] {
			if k.stem == meaning.Stem(c.other) {
				got = k.weight
			}
		}
		if got != c.near {
			t.Errorf("%s for %s is %v, want %v", c.other, c.word, got, c.near)
		}
	}
}
