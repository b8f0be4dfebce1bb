package documents

import (
	"context"
	"errors"
	"strings"
	"testing"

	"oneclaw/internal/office"
)

// What was read when the time ends is the answer.
func TestWhatWasReadInTimeIsShown(t *testing.T) {
	text := strings.Repeat("line\n", 9)
	ctx, cancel := context.WithCancel(t.Context())
	x := &excerpt{want: selection{all: true, to: place{9, 9}}, limit: 1_000}
	lines := 0
	x.checkTime = func() error {
		if lines++; lines == 4 {
			cancel()
		}
		return ctx.Err()
	}
	format, err := office.Read(strings.NewReader(text), int64(len(text)), "x.txt", x)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	x.timedOut = true
	if got := x.buildReport(task{Name: "x.txt"}, format).Text; !strings.Contains(got, "1 text or more\n") || !strings.Contains(got, "line\nline\nline\n\n[Reading took too long") || strings.Count(got, "line\n") != 3 {
		t.Errorf("got %q", got)
	}
	if got := (task{Name: "x.txt", Query: "line"}).answer(ctx, strings.NewReader(text), int64(len(text))); !strings.Contains(got.Text, "took too long") {
		t.Errorf("got %+v", got)
	}
}

// A file that ends in the middle shows what is in front of it.
func TestWhatIsInFrontOfTheDamageIsShown(t *testing.T) {
	text := "one\ntwo\n" + strings.Repeat("x", 9<<20)
	got := task{Name: "x.csv"}.answer(t.Context(), strings.NewReader(text), int64(len(text)))
	if got.Code != "" || !strings.Contains(got.Text, "| 2 | two |") || !strings.Contains(got.Text, "[The rest is missing: the file holds an element of more than the limit") {
		t.Errorf("got %.300q", got)
	}
}
