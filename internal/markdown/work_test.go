package markdown_test

import (
	"strings"
	"testing"

	"oneclaw/internal/markdown"
)

// maxWork is how many characters may be written for each byte of an answer, for both
// platforms, as text and plain, and while the end of a part is looked for.
const maxWork = 100

func checkWork(t testing.TB, text string, limit int) {
	t.Helper()
	if work, most := markdown.Parse(text).Work(limit), maxWork*(len(text)+limit); work > most {
		t.Errorf("%d characters written for %d bytes in parts of %d, at most %d: %.60q", work, len(text), limit, most, text)
	}
}

// TestSplittingIsLinear: what is written for a byte does not grow with the answer.
func TestSplittingIsLinear(t *testing.T) {
	for name, text := range enormous(6_000) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkWork(t, text, 64)
		})
	}
}

// TestEnormousAnswersArriveWhole: nothing is lost where words are severed.
func TestEnormousAnswersArriveWhole(t *testing.T) {
	t.Parallel()
	for name, text := range enormous(8_000) {
		if err := verifyTelegram(text, 500); err != nil {
			t.Errorf("%s for Telegram: %.300v", name, err)
		}
		if err := verifySlack(text, 500); err != nil {
			t.Errorf("%s for Slack: %.300v", name, err)
		}
	}
}

// FuzzWork repeats a text to a size at which quadratic work shows.
func FuzzWork(f *testing.F) {
	for _, text := range enormous(1) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, piece string) {
		if piece != "" {
			checkWork(t, strings.Repeat(piece, 8_000/len(piece)+1), 100)
		}
	})
}
