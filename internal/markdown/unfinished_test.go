package markdown_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/internal/markdown"
)

func TestUnfinishedTextsAreClosed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "",
		"Hello there":                          "Hello there",
		"a **bold te":                          "a **bold te**",
		"a **bold text*":                       "a **bold text**",
		"a **bold** and *it":                   "a **bold** and *it*",
		"a **":                                 "a",
		"a ***both":                            "a ***both***",
		"a **bold _and it":                     "a **bold _and it_**",
		"snake_case and 2 * 3":                 "snake_case and 2 * 3",
		"~~gone":                               "~~gone~~",
		"`code":                                "`code`",
		"``a`b":                                "``a`b``",
		"``a`b`":                               "``a`b``",
		"see `":                                "see",
		"**see `co":                            "**see `co`**",
		"a [link](http://exam":                 "a link",
		"a [link":                              "a link",
		"a [link]":                             "a link",
		"a [link](http://a.b) there":           "a [link](http://a.b) there",
		"a [1] there":                          "a [1] there",
		"one\n\n- two\n- **th":                 "one\n\n- two\n- **th**",
		"one\n\n- two\n- ":                     "one\n\n- two\n",
		"one\n-":                               "one\n",
		"one\n\n#":                             "one\n\n",
		"one\n\n1":                             "one\n\n",
		"```go\nx := `a":                       "```go\nx := `a",
		"```go\nx\n``":                         "```go\nx\n",
		"one\n\n```g":                          "one\n\n",
		"```\nx\n```\n**a":                     "```\nx\n```\n**a**",
		"one\n\n| a | b |\n":                   "one\n\n",
		"one\n\n| a | b |\n|---|":              "one\n\n",
		"| a | b |\n|---|---|\n| c | d |\n| e": "| a | b |\n|---|---|\n| c | d |",
		"back\\":                               "back",
		"\\*no":                                "\\*no",
		"> a **q":                              "> a **q**",
	} {
		if got := markdown.CloseUnfinished(text); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// However an answer with marks is cut, no mark of it is seen.
func TestNoMarkIsSeenWhileATextGrows(t *testing.T) {
	forms := []string{
		"word ", "**bold words** ", "*it* ", "_more of it_ ", "***both*** ", "~~gone with it~~ ", "`code words` ", "[a link](http://a.b/c) ", "**bold `code` and _it_** ",
		"\n\n", "\n- item **one**\n- item two\n\n", "\n\n# A **head**\n\n", "\n\n```go\ncode\n```\n\n", "\n\n| a | b |\n|---|---|\n| c | d |\n\n", "\n\n1. first\n2. second\n\n", "\n\n> quoted *text*\n\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := "Begin. " + strings.Join(rapid.SliceOfN(rapid.SampledFrom(forms), 1, 8).Draw(t, "forms"), "")
		so := text[:rapid.IntRange(0, len(text)).Draw(t, "so far")]
		for _, part := range markdown.Parse(markdown.CloseUnfinished(so)).TelegramHTML(4000) {
			visible, err := checkTelegram(part.Text)
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(visible, "*_~`[]#") || strings.Contains(visible, "| a |") {
				t.Fatalf("%q shows %q", so, visible)
			}
		}
	})
}

// Whatever it is given, what it returns says no other words.
func TestUnfinishedAddsNoWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, _ := generate(t)
		letters := func(s string) string {
			return strings.Join(strings.FieldsFunc(s, func(c rune) bool { return 'a' > c || c > 'z' }), "")
		}
		rest := letters(text)
		for _, c := range letters(markdown.CloseUnfinished(text)) {
			at := strings.IndexRune(rest, c)
			if at < 0 {
				t.Fatalf("%q becomes %q", text, markdown.CloseUnfinished(text))
			}
			rest = rest[at+1:]
		}
	})
}
