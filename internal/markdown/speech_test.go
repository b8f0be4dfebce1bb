package markdown_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"oneclaw/internal/markdown"
)

func TestSpeechIsWhatIsReadAloud(t *testing.T) {
	for text, want := range map[string]string{
		"Hello **Ann**, it is `12:30`.":                                          "Hello Ann, it is 12:30.",
		"# Plan\n\nFirst:\n\n1. buy *milk*\n2. call Bob!":                        "Plan.\nFirst:\nbuy milk.\ncall Bob!",
		"See [the page](https://x.example/a?b) <https://y.example>":              "See the page.",
		"Look:\n\n```go\nx := 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nDone": "Look:\nDone.",
		"> quoted\n> twice\n\n- [x] done":                                        "quoted twice.\ndone.",
		"```\nonly code\n```":                                                    "",
		"line\nbreak  \nhere、世界":                                                 "line break here、世界.",
		"":                                                                       "",
	} {
		if got := markdown.Parse(text).Speech(); got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

func FuzzSpeech(f *testing.F) {
	f.Add("# a\n- b [c](d) `e`\n\n> f")
	f.Fuzz(func(t *testing.T, text string) {
		got := markdown.Parse(text).Speech()
		if !utf8.ValidString(got) || strings.Contains(got, "\n\n") || len(got) > 3*len(text)+8 {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
