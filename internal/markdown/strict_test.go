package markdown_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"

	"oneclaw/internal/emulator/telegram/markup"
	"oneclaw/internal/markdown"
)

// strictTelegram reads each part as the service does, by itself: the two readers of these
// tests were written apart from each other.
func strictTelegram(source string, limit int) error {
	var ends []string
	for i, part := range markdown.Parse(source).TelegramHTML(limit) {
		text, entities, err := markup.ParseHTML(part.Text)
		if err != nil {
			return fmt.Errorf("part %d: %w in %q", i, err, part.Text)
		}
		if ours, err := checkTelegram(part.Text); err != nil || ours != text {
			return fmt.Errorf("part %d shows %q, or %q (%w)", i, text, ours, err)
		}
		read, plain := markup.Text{Plain: text, Entities: entities}, markup.Text{Plain: part.Plain}
		read.Normalize()
		plain.Normalize()
		if size := markup.Size(read.Entities); size > 9500 {
			return fmt.Errorf("the entities of part %d take %d bytes", i, size)
		}
		links := 0
		for _, e := range entities {
			if e.Type == "text_link" {
				links++
			}
		}
		if links != strings.Count(part.Text, "<a ") {
			return fmt.Errorf("part %d loses an address: %q", i, part.Text)
		}
		if utf16Len(text) > limit {
			return fmt.Errorf("part %d shows %d units of %d", i, utf16Len(text), limit)
		}
		if named := append(markup.Mentions(read.Plain, read.Entities), markup.Mentions(plain.Plain, nil)...); len(named) > 0 {
			return fmt.Errorf("part %d calls %q: %q", i, named, part.Text)
		}
		for _, e := range entities {
			if e.Type == "text_mention" || e.Length == 0 || e.Offset+e.Length > utf16Len(text) {
				return fmt.Errorf("part %d has the entity %+v", i, e)
			}
		}
		ends = append(ends, text)
	}
	if lone.MatchString(source) {
		return nil
	}
	return unbroken(ends)
}

// lone finds a mark or joiner without what it belongs to: a cut may come there.
var lone = regexp.MustCompile(`(^|[\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\xbf\pZ\pC])[\p{Mn}\x{200D}\x{1F3FB}-\x{1F3FF}]|\x{200D}[\x00-\x7f\x{FFFD}\pZ\pC]`)

// unbroken reports where a cut went through what a reader takes for one character.
func unbroken(parts []string) error {
	for i := 1; i < len(parts); i++ {
		next, _ := utf8.DecodeRuneInString(parts[i])
		selector := next == '\ufe0f' || next >= 0x1F3FB && next <= 0x1F3FF
		if joins(parts[i-1]) && unicode.Is(unicode.So, next) && next != utf8.RuneError || next == '\u200d' || selector || unicode.Is(unicode.Mn, next) {
			return fmt.Errorf("cut between %q and %q", tailOf(parts[i-1]), headOf(parts[i]))
		}
	}
	return nil
}

// joins reports whether a text ends with a picture and what joins the next one to it.
func joins(s string) bool {
	picture, found := strings.CutSuffix(s, "\u200d")
	last, _ := utf8.DecodeLastRuneInString(picture)
	return found && last > unicode.MaxLatin1 && last != utf8.RuneError && !unicode.IsLetter(last)
}

func headOf(s string) string { return string([]rune(s)[:min(5, utf8.RuneCountInString(s))]) }

func tailOf(s string) string {
	r := []rune(s)
	return string(r[max(0, len(r)-5):])
}

// oddities are texts in the places where renderers go wrong.
func oddities() []string {
	return []string{
		"plain", "ann.lee+news@example.org", "o'neil@example.org", "a|b", `a\|b`, "`a|b`", "**b**", "*i*", "~~s~~", "<b>x</b>", "&amp; & &lt;", "@bob", "@**bob**", "**@**bob", "[@bob](http://a.b)", "x@bob", "(@bob_x)",
		"[u](tg://user?id=7)", "[u](TG://User?id=7)", "[u](tg:user?id=7)", "[u](tg:@ser?id=7)", "<@U012AB>", "<!channel>", "@channel", "@here,", "<!subteam^S1>", "/clear@bot",
		"שלום **עולם** (שלום)", "مرحبا [رابط](http://a.b/?q=ع&x=\"1\")", "\u202eevil\u202c", "👩‍👩‍👧‍👦👍🏽", "🇩🇪🇫🇷", "e\u0301a\u0308", "☝🏿️", "नमस्ते", "ก็",
		"[x](<http://a.b/c d>)", "[x](http://a.b/(c)d)", "[x](http://a.b/%zz?<>&\"')", "[x](http://[::1]:80/)", "[a\\]b](http://a.b \"t\")", "<http://a.b/?x=1&y=2>", "http://a.b/~x_y_z*",
		"[x](http://localhost:3000/d/1)", "[x](http://a.b:99999)", "[x](http://u:p@a.b:80?q)", "[x](http://a<b.c)", "[x](tg:a.b)", "[x](http://[::1%25a]/)", "http://wiki/x",
		"@\u202aann", "@&#x30a;ann", "@\u0333`bob`", "@&#13;eve", "&#x202a;",
		"", " ", "\u00a0", strings.Repeat("長い", 30), strings.Repeat("👩‍👩‍👧‍👦", 12),
	}
}

// document makes Markdown of tables, nested lists, quotes and code with odd contents.
func document(t *rapid.T) string {
	odd := rapid.SampledFrom(oddities())
	var b strings.Builder
	for range rapid.IntRange(1, 6).Draw(t, "blocks") {
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0: // a table, with rows that are too short or too long
			columns := rapid.IntRange(1, 5).Draw(t, "columns")
			row := func(n int) {
				fmt.Fprintf(&b, "| %s |\n", strings.Join(rapid.SliceOfN(odd, n, n).Draw(t, "cells"), " | "))
			}
			row(columns)
			b.WriteString("|" + strings.Repeat(rapid.SampledFrom([]string{"-|", ":-|", "-:|", ":-:|"}).Draw(t, "align"), columns) + "\n")
			for range rapid.IntRange(0, 6).Draw(t, "rows") {
				row(rapid.IntRange(1, columns+1).Draw(t, "of"))
			}
		case 1: // lists in lists
			for range rapid.IntRange(1, 8).Draw(t, "items") {
				indent := strings.Repeat("   ", rapid.IntRange(0, 6).Draw(t, "depth"))
				b.WriteString(indent + rapid.SampledFrom([]string{"- ", "1. ", "* ", "9) ", "- [ ] ", "- [x] "}).Draw(t, "mark") + odd.Draw(t, "item") + "\n")
			}
		case 2:
			for range rapid.IntRange(1, 4).Draw(t, "lines") {
				b.WriteString(strings.Repeat("> ", rapid.IntRange(1, 4).Draw(t, "depth")) + odd.Draw(t, "line") + "\n")
			}
		case 3:
			fence := rapid.SampledFrom([]string{"```", "~~~", "````"}).Draw(t, "fence")
			b.WriteString(fence + rapid.SampledFrom([]string{"", "go", "c++", "a\"b", "<x>"}).Draw(t, "language") + "\n")
			b.WriteString(strings.Join(rapid.SliceOf(odd).Draw(t, "code"), "\n") + "\n" + rapid.SampledFrom([]string{fence, ""}).Draw(t, "end") + "\n")
		case 4:
			fmt.Fprintf(&b, "`%s` *%s* **%s** [%s](http://a.b)\n", odd.Draw(t, "code"), odd.Draw(t, "i"), odd.Draw(t, "b"), odd.Draw(t, "link"))
		case 5:
			b.WriteString(strings.Repeat("#", rapid.IntRange(1, 7).Draw(t, "level")) + " " + odd.Draw(t, "heading") + "\n")
		default:
			b.WriteString(strings.Join(rapid.SliceOf(odd).Draw(t, "words"), " ") + "\n")
		}
		b.WriteString(rapid.SampledFrom([]string{"\n", "", "\n\n"}).Draw(t, "gap"))
	}
	return b.String()
}

// Tables, lists, quotes and code with odd contents: every part is valid by itself for
// the service's own reader, calls nobody, and no character is torn.
func TestOddDocumentsAreValidInEveryPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := document(t)
		limit := rapid.OneOf(rapid.IntRange(markdown.MinLimit, 200), rapid.Just(4096)).Draw(t, "limit")
		if err := strictTelegram(source, limit); err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		if err := verifyTelegram(source, limit); err != nil {
			t.Fatalf("telegram: %v\n%s", err, source)
		}
		if err := verifySlack(source, max(limit, 200)); err != nil {
			t.Fatalf("slack: %v\n%s", err, source)
		}
		var shown []string
		for _, p := range markdown.Parse(source).SlackMrkdwn(max(limit, 200)) {
			shown = append(shown, p.Plain)
		}
		if err := unbroken(shown); err != nil {
			t.Fatalf("slack: %v\n%s", err, source)
		}
	})
}

func TestGeneratedTextsAreReadByTheService(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source, limit := generate(t)
		if err := strictTelegram(source, limit); err != nil {
			t.Fatalf("%v\n%q", err, source)
		}
	})
}

// A text of emoji of many code points is cut between them.
func TestCutsBetweenCharactersOfManyCodePoints(t *testing.T) {
	for _, one := range []string{"👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301", "नि", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"} {
		source := strings.Repeat(one, 200)
		var back strings.Builder
		for _, p := range markdown.Parse(source).TelegramHTML(100) {
			if n := uniseg.GraphemeClusterCount(p.Text); n != strings.Count(p.Text, one) {
				t.Errorf("%q: a part has %d characters, %d of them whole", one, n, strings.Count(p.Text, one))
			}
			back.WriteString(p.Text)
		}
		if back.String() != source {
			t.Errorf("%q: something is lost", one)
		}
	}
}

func FuzzStrictTelegram(f *testing.F) {
	for i, s := range slices.Concat(oddities(), fragments()) {
		f.Add("| "+s+" | x |\n|-|-|\n| "+s+" | y |\n\n- "+s+"\n   - "+s+"\n> "+s, uint16(i*3))
	}
	f.Fuzz(func(t *testing.T, source string, limit uint16) {
		if err := strictTelegram(source, markdown.MinLimit+int(limit)%4033); err != nil {
			t.Fatal(err)
		}
	})
}
