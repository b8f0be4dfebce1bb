package platformtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode"
)

func textProperties() []property {
	return []property{
		{"LongAnswers", "A long answer arrives complete and in order, in parts within the platform's limit.", testLongAnswers},
		{"OddTexts", "Whatever the model answers, something is shown, all its words appear, and the platform refuses nothing.", testOddTexts},
	}
}

func testLongAnswers(t testing.TB, w *world) {
	var words, code strings.Builder
	var want []string
	for i := range 1500 {
		want = append(want, fmt.Sprintf("w%05d", i))
		words.WriteString(want[i] + " ")
		code.WriteString(want[i] + "\n")
	}
	solid := strings.Repeat("x", 10_000)
	answers := map[string]string{
		"words": words.String(), "code": "```go\n" + code.String() + "```", "bold": "**" + words.String() + "**",
		"solid": solid,
	}
	w.respond = func(ctx context.Context, said []string) string {
		if text, ok := answers[said[len(said)-1]]; ok {
			return text
		}
		return echo(ctx, said)
	}
	w.start()
	for _, kind := range []Kind{Direct, thread} {
		place := w.open(kind, w.harness.Member)
		before := 0
		for _, name := range []string{"words", "code", "bold", "solid"} {
			w.say(place, name)
			all := w.awaitSettled(place)
			got := all[before:]
			before = len(all)
			w.wantWithinLimit(got)
			if name == "solid" {
				if n := strings.Count(joinTexts(got), "x"); n != len(solid) {
					t.Errorf("%d of %d characters arrived", n, len(solid))
				}
				continue
			}
			w.wantInOrder(joinTexts(got), want)
		}
	}
}

func (w *world) wantWithinLimit(parts []Shown) {
	w.t.Helper()
	for i, s := range parts {
		if s.Length > w.harness.Limit {
			w.t.Errorf("part %d has %d characters, more than %d", i, s.Length, w.harness.Limit)
		}
		if isMarked(s) {
			w.t.Errorf("part %d is marked as a repeat", i)
		}
	}
}

// wantInOrder checks that the words occur in this order.
func (w *world) wantInOrder(text string, words []string) {
	w.t.Helper()
	rest := text
	for _, word := range words {
		_, after, found := strings.Cut(rest, word)
		if !found {
			w.t.Errorf("%q is not where it should be in %.300q", word, text)
			return
		}
		rest = after
	}
}

func joinTexts(parts []Shown) string { return strings.Join(texts(parts), "\n") }

// oddText is an unusual answer, with words that users must see, in this order.
type oddText struct {
	name, text string
	words      []string
}

func oddTexts() []oddText {
	var table strings.Builder
	table.WriteString("| key | value |\n|---|---|\n")
	var rows []string
	for i := range 300 {
		fmt.Fprintf(&table, "| row%03d | v%03d |\n", i, i)
		rows = append(rows, fmt.Sprintf("row%03d", i), fmt.Sprintf("v%03d", i))
	}
	return []oddText{
		{"only entities", "&nbsp;&#8203;", nil},
		{"only a comment", "<!-- nothing -->", nil},
		{"only a rule", "---", nil},
		{"only stars", "** **", nil},
		{"only a heading sign", "#", nil},
		{"only an empty link", "[](https://a.test)", nil},
		{"only an empty fence", "```\n```", nil},
		{"only a quote sign", ">", nil},
		{"only an empty list", "-\n-\n-", nil},
		{"only emoji", "🎉👩‍👩‍👧‍👦🇺🇳👍🏽", []string{"🎉", "👩‍👩‍👧‍👦", "🇺🇳", "👍🏽"}},
		{"right to left", "שלום **עולם**، مرحبا", []string{"שלום", "עולם", "مرحبا"}},
		{"unbalanced", "**bold _it ~~gone `code [link](https://a.test", []string{"bold", "it", "gone", "code", "link"}},
		{"crossed", "**a _b** c_ ~~d **e~~ f**", []string{"a", "b", "c", "d", "e", "f"}},
		{"angle brackets", "a < b && c > d; x <y> z; if (a<b>c) &amp; &lt;", []string{"a < b && c > d", "x", "z"}},
		{"foreign markup", "<b>one</b> <i>two <u>three</b> <script>four()</script>", []string{"one", "two", "three", "four()"}},
		{"calls", "<!channel> <!here|all> <@U1> @channel @everyone end", []string{"channel", "everyone", "end"}},
		{"only a fence", "```\nonly code < here\n```", []string{"only code < here"}},
		{"a fence that does not end", "before\n\n```go\nx := \"<a>\" &y", []string{"before", "x := \"<a>\" &y"}},
		{"fences in a fence", "````\n```\ninner\n```\n````", []string{"inner"}},
		{"a large table", table.String(), rows},
		{"controls", "a\x00b\x1bc\r\nd\u2028e\xff f", []string{"c", "d", "f"}},
		{"many signs on a letter", "z" + strings.Repeat("\u0301", 3000) + " end", []string{"z", "end"}},
		{"deep quotes", strings.Repeat("> ", 200) + "deep", []string{"deep"}},
		{"deep lists", deepList(100), []string{"item00", "item50", "item99"}},
		{"a long address", "[here](https://a.test/" + strings.Repeat("q", 5000) + "?a=\"1\"&b=<2>) after", []string{"here", "after"}},
		{"many lines", "top" + strings.Repeat("\n", 3000) + "bottom", []string{"top", "bottom"}},
	}
}

func deepList(depth int) string {
	var b strings.Builder
	for i := range depth {
		fmt.Fprintf(&b, "%s- item%02d\n", strings.Repeat("  ", i), i)
	}
	return b.String()
}

func isVisible(r rune) bool {
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.In(r, unicode.Other, unicode.Mark)
}

func testOddTexts(t testing.TB, w *world) {
	odd := oddTexts()
	w.respond = func(ctx context.Context, said []string) string {
		last := said[len(said)-1]
		for _, o := range odd {
			if o.name == last {
				return o.text
			}
		}
		return echo(ctx, said)
	}
	w.start()
	place := w.open(Direct, w.harness.Member)
	before := 0
	for _, o := range odd {
		sends := w.view()
		w.say(place, o.name)
		all := w.awaitSettled(place)
		got := all[before:]
		before = len(all)
		if !strings.ContainsFunc(joinTexts(got), isVisible) {
			t.Errorf("%s: nothing is shown", o.name)
		}
		w.wantWithinLimit(got)
		w.wantInOrder(joinTexts(got), o.words)
		now := w.view()
		if tried, arrived := now.Sends-sends.Sends, len(now.Messages)-len(sends.Messages); tried != arrived {
			t.Errorf("%s: %d sends for %d messages: the platform refused something", o.name, tried, arrived)
		}
	}
}
