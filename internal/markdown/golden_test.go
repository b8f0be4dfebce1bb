package markdown_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/markdown"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// limits holds the limit of golden files that are about splitting.
func limits(name string) int {
	if strings.HasPrefix(name, "split") {
		return 160
	}
	return 3000
}

// TestGolden compares the renderings of testdata/*.md with the files beside
// them; the zero-width space is written as ␣ there.
func TestGoldenRenderings(t *testing.T) {
	sources, err := filepath.Glob("testdata/*.md")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range sources {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			doc, limit := markdown.Parse(string(source)), limits(name)
			telegram := doc.TelegramHTML(limit)
			golden(t, strings.TrimSuffix(path, ".md")+".telegram.html", telegram)
			golden(t, strings.TrimSuffix(path, ".md")+".slack.txt", doc.SlackMrkdwn(limit))
		})
	}
}

func golden(t *testing.T, path string, parts []markdown.Part) {
	t.Helper()
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			fmt.Fprintf(&b, "=== part %d\n", i+1)
		}
		b.WriteString(strings.ReplaceAll(p.Text, "\u200b", "␣") + "\n")
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
