package blocks

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSectionsKeepTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"word", " ", "\n", "\n\n", "&amp;", "é🙂", "```\n", strings.Repeat("long", 50)}), 1, 900).Draw(t, "words")
		body := strings.Join(words, "")
		var b strings.Builder
		for _, piece := range splitSections(body, false) {
			if n := utf8.RuneCountInString(piece); n == 0 || n > MaxSection {
				t.Fatalf("a section of %d characters", n)
			}
			if cut := strings.LastIndexByte(piece, '&'); cut >= 0 && !strings.Contains(piece[cut:], ";") {
				t.Fatalf("an entity is cut: %q", piece[cut:])
			}
			b.WriteString(piece)
		}
		bare := strings.NewReplacer(fence, "", "\n", "")
		if got, want := bare.Replace(b.String()), bare.Replace(body); got != want {
			t.Fatalf("the text changed:\n%q\n%q", want, got)
		}
	})
}
