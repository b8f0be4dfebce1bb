// Package wording cuts texts, embeds foreign texts safely in those of the bot, formats numbers
// and times for people, and finds the name that a mistyped one means.
package wording

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
)

// Escape escapes a text of one line, so that it is shown as it is.
func Escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\\`*_[]<>~|&!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Visible reports whether a text has a visible character: platforms refuse messages without one.
func Visible(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != '\u2800' &&
			!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	})
}

// Shown returns a text of one line as Markdown that shows it as it is.
func Shown(text string) string {
	return Escape(strings.Join(strings.Fields(reveal(text)), " "))
}

// Code formats a name as code.
func Code(name string) string {
	return "`" + strings.ReplaceAll(strings.Join(strings.Fields(reveal(name)), " "), "`", "'") + "`"
}

// Fence puts a text into a block of code, which it cannot close.
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
	return marks + "\n" + reveal(text) + "\n" + marks
}

// OneLine returns a foreign text as one line of at most limit characters, without invisible and
// bidirectional control characters.
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

// Roughly formats a time of more than a minute in words.
func Roughly(d time.Duration) string {
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

// Count formats a number with its noun.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Column returns a spreadsheet's name of a column, the first being 0.
func Column(at int) string {
	name := ""
	for at++; at > 0; at = (at - 1) / 26 {
		name = string(rune('A'+(at-1)%26)) + name
	}
	return name
}

// Clock formats a time of day with its zone.
func Clock(t time.Time) string { return t.Format("15:04:05 MST") }

// Short rounds a duration for display.
func Short(d time.Duration) string {
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

// ListOr lists names, or returns none if there are none.
func ListOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}

// Minutes formats a duration in words.
func Minutes(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		if d == time.Minute {
			return "a minute"
		}
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return d.String()
}

// Bytes formats a size.
func Bytes(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d MB", n>>20)
}
