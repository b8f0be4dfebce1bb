// Package wording shortens texts, makes texts of users and models safe for use in the bot's own, formats
// numbers and times for people, and finds the known name nearest to a mistyped one.
package wording

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Mask is shown in place of a secret.
const Mask = "••••"

// EscapeMarkdown escapes a text of one line for Markdown, so that it is shown literally.
func EscapeMarkdown(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\\`*_[]<>~|&!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// HasVisible reports whether a text has a visible character. Platforms refuse messages without one.
func HasVisible(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != '\u2800' &&
			!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	})
}

// Letters returns the letters, marks and digits of a text in lower case, for a comparison that leaves out how it is dressed.
func Letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.L, unicode.M, unicode.N) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// EscapeRevealed joins the lines of a text, makes hidden characters visible, and escapes the result.
func EscapeRevealed(text string) string {
	return EscapeMarkdown(strings.Join(strings.Fields(revealHidden(text)), " "))
}

// InlineCode formats a name as inline code. It makes hidden characters visible.
func InlineCode(name string) string {
	return "`" + strings.ReplaceAll(strings.Join(strings.Fields(revealHidden(name)), " "), "`", "'") + "`"
}

// blankEnd matches blanks at the end of a line, which no screen shows: behind a backslash they end a command.
var blankEnd = regexp.MustCompile(`(?m)[ \t]+$`)

// Fence puts a text into a fenced code block that the text cannot close. It makes hidden characters
// visible, and blanks at the end of a line, and keeps lines of syntax in their order.
func Fence(text string) string {
	longest, run := 0, 0
	for _, r := range text {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	marks := strings.Repeat("`", max(3, longest+1))
	return marks + "\n" + leftToRight(blankEnd.ReplaceAllStringFunc(revealHidden(text), countBlank)) + "\n" + marks
}

// OneLine joins the lines of a text, removes invisible and bidirectional control characters, and
// shortens it to at most limit characters.
func OneLine(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, text)
	return Clip(strings.Join(strings.Fields(text), " "), limit)
}

// doubleMarks matches what looks like a quotation mark, also two single ones in a row.
var doubleMarks = regexp.MustCompile("[\"“”„‟″‶〝〞〟＂❝❞ʺˮ״〃'‘’‚‛′‵`]*[\"“”„‟″‶〝〞〟＂❝❞ʺˮ״〃][\"“”„‟″‶〝〞〟＂❝❞ʺˮ״〃'‘’‚‛′‵`]*|['‘’‚‛′‵`]{2,}")

// Quote puts a text of a model or a person between quotation marks in a sentence of the program, on one line and
// shortened to at most limit characters. Marks within it would seem to end it, so they become single ones, and what
// no screen shows is spelled out: models read it.
func Quote(text string, limit int) string {
	return "“" + OneLine(spellInvisible(doubleMarks.ReplaceAllString(text, "’")), limit) + "”"
}

// QuotesWhole reports whether [Quote] shortens nothing. Of what is joined, such as blanks, no more than limit counts as shown
// either: many of them can spell a text.
func QuotesWhole(text string, limit int) bool {
	return utf8.RuneCountInString(text) <= limit && Quote(text, limit) == Quote(text, math.MaxInt)
}

// spellInvisible writes the code points of characters that have no look of their own, except between emoji and between
// letters of scripts that need them, such as that of Persian.
func spellInvisible(text string) string {
	runes := []rune(text)
	joins := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsSymbol(runes[i]) || runes[i] > '\u0600' && (unicode.IsLetter(runes[i]) || unicode.IsMark(runes[i])))
	}
	var out strings.Builder
	for i, r := range runes {
		if unicode.IsGraphic(r) || unicode.IsSpace(r) || (r == '\u200c' || r == '\u200d') && joins(i-1) && joins(i+1) {
			out.WriteRune(r)
		} else {
			writeCode(&out, r)
		}
	}
	return out.String()
}

// RoughDuration formats a duration of at least a minute in words, rounded to one unit.
func RoughDuration(d time.Duration) string {
	unit, name := time.Minute, "minute"
	switch {
	case d >= 36*time.Hour:
		unit, name = 24*time.Hour, "day"
	case d >= 90*time.Minute:
		unit, name = time.Hour, "hour"
	}
	n := int(math.Round(float64(d) / float64(unit)))
	if n == 1 {
		return "1 " + name
	}
	return fmt.Sprintf("%d %ss", n, name)
}

// Plural formats a number with its noun, which is one for 1 and many otherwise.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// ColumnName returns the name of a column in a spreadsheet. Columns count from 0, which is A.
func ColumnName(at int) string {
	name := ""
	for at++; at > 0; at = (at - 1) / 26 {
		name = string(rune('A'+(at-1)%26)) + name
	}
	return name
}

// RepeatedLetter formats a number from 1 on as the item of a list: AA, BB and so on follow Z.
func RepeatedLetter(n int) string { return strings.Repeat(ColumnName((n-1)%26), (n-1)/26+1) }

// Roman formats a number in Roman numerals.
func Roman(n int) string {
	var b strings.Builder
	for _, r := range []struct {
		value int
		text  string
	}{
		{1000, "M"},
		{900, "CM"},
		{500, "D"},
		{400, "CD"},
		{100, "C"},
		{90, "XC"},
		{50, "L"},
		{40, "XL"},
		{10, "X"},
		{9, "IX"},
		{5, "V"},
		{4, "IV"},
		{1, "I"},
	} {
		for ; n >= r.value; n -= r.value {
			b.WriteString(r.text)
		}
	}
	return b.String()
}

// ClockTime formats a time of day with its time zone.
func ClockTime(t time.Time) string { return t.Format("15:04:05 MST") }

// ShortDuration formats a duration, rounded for display.
func ShortDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// JoinOr joins names with commas. It returns none if there are no names.
func JoinOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}

// DurationInWords formats a duration in words, to the second, and from an hour on to the minute.
func DurationInWords(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than a second"
	case d.Round(time.Second) < time.Hour:
		return inTwoUnits(int(d.Round(time.Second)/time.Second), "a", "minute", "second")
	}
	return inTwoUnits(int(d.Round(time.Minute)/time.Minute), "an", "hour", "minute")
}

// inTwoUnits formats n small units, of which 60 make a large one. article is that of the large unit.
func inTwoUnits(n int, article, large, small string) string {
	switch {
	case n == 1:
		return "a " + small
	case n < 60:
		return Plural(n, small, small+"s")
	case n == 60:
		return article + " " + large
	case n%60 == 0:
		return Plural(n/60, large, large+"s")
	}
	return Plural(n/60, large, large+"s") + " and " + Plural(n%60, small, small+"s")
}

// FormatSize formats a size in bytes, KB or MB.
func FormatSize(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d MB", n>>20)
}
