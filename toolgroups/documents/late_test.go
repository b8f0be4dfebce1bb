package documents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"oneclaw/toolgroups/documents/office"
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
		t.Errorf("got %.300q", got.Text)
	}
}

// A row or paragraph that is longer than a result is cut, and what follows it is read too.
func TestWhatIsLongerThanAResultIsCut(t *testing.T) {
	row := strings.TrimSuffix(strings.Repeat("cell,", 2_000), ",") + "\n"
	for name, text := range map[string]string{
		"wide.csv": "a,b\n" + row + "1,<end>\n", "long.csv": strings.Repeat("x", 5_000) + ",y\n" + row + "1,<end>\n",
		"long.txt": strings.Repeat("word ", 2_000) + "\n\n" + strings.Repeat("word ", 2_000) + "\n\n<end>\n", "all.csv": row,
	} {
		part, pieces := "", 0
		for {
			got := task{Name: name, Part: part, Inline: 2_500}.answer(t.Context(), strings.NewReader(text), int64(len(text)))
			if pieces++; got.Code != "" || utf8.RuneCountInString(got.Text) > 3_000 || pieces > 5 {
				t.Fatalf("%s, part %q: %s, %d characters: %.300s", name, part, got.Code, utf8.RuneCountInString(got.Text), got.Text)
			}
			if _, after, more := strings.Cut(got.Text, "Go on with part "); more {
				_, err := fmt.Sscanf(after, "%q", &part)
				if err != nil {
					t.Fatal(err)
				}
				continue
			}
			if name != "all.csv" && !strings.Contains(got.Text, "<end>") || name == "all.csv" && !strings.Contains(got.Text, "cell | … |\n\n[The first row is longer") {
				t.Errorf("%s ends with %s", name, got.Text)
			}
			break
		}
	}
}
