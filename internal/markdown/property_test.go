package markdown_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"oneclaw/internal/markdown"
)

// verifyTelegram checks all that must hold for the parts of any text.
func verifyTelegram(source string, limit int) error {
	doc := markdown.Parse(source)
	var shown, plain []string
	parts := doc.TelegramHTML(limit)
	if len(parts) == 0 && seen(markdown.WithoutDeleted(source)) {
		return errors.New("nothing is left of it")
	}
	for i, part := range parts {
		visible, err := checkTelegram(part.Text)
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		if n := utf16Len(visible); n > limit || utf16Len(part.Text) > 4*limit {
			return fmt.Errorf("part %d shows %d units, has %d, limit %d", i, n, utf16Len(part.Text), limit)
		}
		if solid(visible) == "" || utf16Len(part.Plain) > limit || !utf8.ValidString(part.Plain) {
			return fmt.Errorf("part %d: text %q, plain %q", i, part.Text, part.Plain)
		}
		shown, plain = append(shown, visible), append(plain, part.Plain)
	}
	want, heads := doc.Visible(limit)
	if err := whole(want, heads, shown); err != nil {
		return fmt.Errorf("text: %w", err)
	}
	if strings.Contains(source, ":") || strings.Contains(source, "]") || strings.Contains(source, "www.") {
		return nil // plain text has the addresses of links besides
	}
	return whole(want, heads, plain)
}

// verifySlack does the same for Slack.
func verifySlack(source string, limit int) error {
	doc := markdown.Parse(source)
	var plain []string
	parts := doc.SlackMrkdwn(limit)
	if len(parts) == 0 && seen(source) {
		return errors.New("nothing is left of it")
	}
	for i, part := range parts {
		visible, err := checkSlack(part.Text)
		if err != nil {
			return fmt.Errorf("part %d: %w in %q", i, err, part.Text)
		}
		if utf16Len(part.Text) > limit || utf16Len(part.Plain) > limit {
			return fmt.Errorf("part %d has %d units, plain %d, limit %d", i, utf16Len(part.Text), utf16Len(part.Plain), limit)
		}
		if live := broadcasts.FindString(part.Plain); live != "" || strings.ContainsAny(part.Plain, "<>") {
			return fmt.Errorf("part %d: live plain text %q", i, part.Plain)
		}
		if solid(visible) == "" || solid(part.Plain) == "" {
			return fmt.Errorf("part %d is empty", i)
		}
		plain = append(plain, unescape(part.Plain))
	}
	if strings.Contains(source, ":") || strings.Contains(source, "]") || strings.Contains(source, "www.") || strings.Contains(source, "@") {
		return nil
	}
	want, heads := doc.VisibleSlack(limit)
	return whole(want, heads, plain)
}

// seen reports whether a reader of the source sees anything.
func seen(source string) bool {
	return strings.ContainsFunc(source, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

// fragments are what generated texts are made of: all the syntax, and
// characters of several code points or units.
func fragments() []string {
	return []string{
		"word", "a", " ", " ", "\n", "\n\n", "\n\n\n", "*", "**", "_", "~~", "`", "``", "```", "```go\n", "\n```\n",
		"# ", "\n## ", "- ", "\n- ", "\n  - ", "\n1. ", "\n7) ", "> ", "\n> ", "\n>> ", "- [ ] ", "- [x] ",
		"|", "\n|a|b|\n|-|-:|\n|c|d|\n", "\n---\n", "<", ">", "&", "&amp;", "&lt;", "&#10;", "\"", "'", "<b>", "</b>", "<!channel>",
		"<@U1>", "@channel", "@name", "@", "[", "](", ")", "[x](http://a.b/?q=\"&r=1)", "![i](u)", "[m](mailto:a@b.c)",
		"[u](tg://user?id=1)", "http://x.y/z_z", "www.a.bc", "a@b.cd", "[r]: http://r.s\n", "\\", "\\*", "\t", "    ",
		"👩‍👩‍👧‍👦", "🇩🇪", "e\u0301", "𝕏", "שלום", "中文。你好，", "\u200b", "\u00a0", strings.Repeat("x", 70), strings.Repeat("長", 40), "\x00", "\r\n", "\xff",
		"http://long.example/" + strings.Repeat("p", 90),
	}
}

func generate(t *rapid.T) (string, int) {
	source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments()), 0, 80).Draw(t, "fragments"), "")
	limit := rapid.OneOf(rapid.IntRange(markdown.MinLimit, 200), rapid.IntRange(200, 4096)).Draw(t, "limit")
	return source, limit
}

func TestTelegramPartsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source, limit := generate(t)
		if err := verifyTelegram(source, limit); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSlackPartsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source, limit := generate(t)
		if err := verifySlack(source, limit); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWordsOfTheSourceStayInOrder checks against the source itself, not
// against another rendering, that no construct loses its text.
//
// A long answer is split in order, nothing is lost.
func TestWordsOfTheSourceStayInOrder(t *testing.T) {
	forms := []string{
		"# %s\n\n", "%s %s\n\n", "- %s\n- **%s**\n\n", "- %s\n  - _%s_\n\n", "3. %s\n4. ~~%s~~\n\n", "> %s\n> %s\n\n", "> > %s\n\n",
		"```go\n%s\n%s\n```\n\n", "| %s | %s |\n|---|---|\n| %s | %s |\n\n", "<div>%s</div>\n\n", "<!-- %s -->\n\n", "[%s](http://a.b) `%s`\n\n",
		"![%s](http://a.b)\n\n", "    %s\n\n", "%s\n===\n\n", "- [ ] %s\n- [x] %s\n\n", "1. %s\n\n   %s\n\n", "[%s]: http://a.b\n\n", "x<b>%s</b>\n%s\n\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		var source strings.Builder
		count := 0
		for _, form := range rapid.SliceOfN(rapid.SampledFrom(forms), 1, 12).Draw(t, "forms") {
			words := make([]any, strings.Count(form, "%s"))
			for i := range words {
				words[i] = fmt.Sprintf("w%dw", count)
				count++
			}
			fmt.Fprintf(&source, form, words...)
		}
		doc := markdown.Parse(source.String())
		limit := rapid.IntRange(markdown.MinLimit, 400).Draw(t, "limit")
		inOrder(t, doc.TelegramHTML(limit), count)
		inOrder(t, doc.SlackMrkdwn(limit), count)
	})
}

func inOrder(t *rapid.T, parts []markdown.Part, count int) {
	t.Helper()
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text + "\n")
	}
	rest := all.String()
	for i := range count {
		word := fmt.Sprintf("w%dw", i)
		at := strings.Index(rest, word)
		if at < 0 {
			t.Fatalf("%s is lost or out of order in %q", word, all.String())
		}
		rest = rest[at+len(word):]
	}
}

func FuzzTelegramHTML(f *testing.F) {
	for i, s := range fragments() {
		f.Add(strings.Repeat(s+" **b** ", 20), uint16(i*7))
	}
	f.Fuzz(func(t *testing.T, source string, limit uint16) {
		if err := verifyTelegram(source, markdown.MinLimit+int(limit)%4033); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzSlackMrkdwn(f *testing.F) {
	for i, s := range fragments() {
		f.Add(strings.Repeat(s+" **b** ", 20), uint16(i*7))
	}
	f.Fuzz(func(t *testing.T, source string, limit uint16) {
		if err := verifySlack(source, markdown.MinLimit+int(limit)%4033); err != nil {
			t.Fatal(err)
		}
	})
}
