package telegram

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
)

// The formatting of a text reaches the model as Markdown, since it may be what a message says: the items that are
// struck through, whose words are quoted, the moment behind "tomorrow".

// inlineMarks are the marks around formatted text. Bold, italic and underlined text has none: it says the same
// without.
var inlineMarks = map[string]string{"strikethrough": "~~", "spoiler": "||", "marked": "=="}

// edit replaces a span by text.
type edit struct {
	span
	text string
}

// markedText returns the part of a text between from and to with its formatting in Markdown, and with the addresses
// of links whose texts do not show them.
func markedText(units []uint16, entities []entity, from, to int) string {
	return strings.TrimSpace(applyEdits(units, markEdits(units, entities, from, to), from, to))
}

// linkedText is markedText with links alone, for a text that is read literally.
func linkedText(units []uint16, entities []entity, from, to int) string {
	links := slices.DeleteFunc(slices.Clone(entities), func(e entity) bool { return e.Type != "text_link" })
	return markedText(units, links, from, to)
}

// markEdits returns what to insert into a text, by position. Entities come sorted, outer ones first, and each is
// inside another or apart from it (core.telegram.org/bots/api#formatting-options).
func markEdits(units []uint16, entities []entity, from, to int) []edit {
	type insertion struct {
		edit
		order int
	}
	var list []insertion
	for i, e := range entities {
		whole, ok := e.span(len(units))
		if !ok {
			continue
		}
		s := span{max(whole.from, from), min(whole.to, to)}
		if e.Type != "text_link" { // no mark closes behind white space
			s = trimSpan(units, s)
		}
		if s.from >= s.to {
			continue
		}
		part := units[s.from:s.to]
		insert := func(at, order int, text string) {
			if text != "" {
				list = append(list, insertion{edit{span{at, at}, text}, order})
			}
		}
		open, shut := e.marks(string(utf16.Decode(units[whole.from:whole.to])), part, s == trimSpan(units, span{from, to}))
		switch e.Type {
		case "pre":
			open, shut = lineStart(units, s.from, from)+open, shut+lineEnd(units, s.to, to, "\n")
		case "blockquote", "expandable_blockquote":
			open, shut = lineStart(units, s.from, from)+"> ", lineEnd(units, s.to, to, "\n\n")
			for at, unit := range part {
				if unit == '\n' {
					insert(s.from+at+1, i+1, "> ")
				}
			}
		}
		insert(s.from, i+1, open)
		insert(s.to, -i-1, shut)
	}
	slices.SortStableFunc(list, func(a, b insertion) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.order, b.order)) })
	edits := make([]edit, len(list))
	for i, one := range list {
		edits[i] = one.edit
	}
	return edits
}

// marks returns what to insert before and after the text of an entity. text is the whole text, part what is shown of
// it; alone says that there is no other text.
func (e entity) marks(text string, part []uint16, alone bool) (open, shut string) {
	switch e.Type {
	case "text_link":
		if e.URL != "" && e.URL != text {
			return "", " (" + e.URL + ")"
		}
	case "date_time":
		return "", momentSuffix(e.UnixTime)
	case "code":
		if alone {
			return "", ""
		}
		return codeMarks(string(utf16.Decode(part)))
	case "pre":
		fence := fenceOf(string(utf16.Decode(part)))
		return fence + oneLine(e.Language) + "\n", "\n" + fence
	}
	return inlineMarks[e.Type], inlineMarks[e.Type]
}

// codeMarks returns the marks of code within a line.
func codeMarks(code string) (open, shut string) {
	run := longestTicks(code)
	if run == 0 {
		return "`", "`"
	}
	marks := strings.Repeat("`", run+1)
	return marks + " ", " " + marks
}

// fenceOf returns a fence that does not occur in a block of code.
func fenceOf(code string) string { return strings.Repeat("`", max(3, longestTicks(code)+1)) }

// longestTicks returns the length of the longest run of backticks.
func longestTicks(code string) (longest int) {
	run := 0
	for _, r := range code {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// momentSuffix returns the moment that a text such as "tomorrow" stands for.
func momentSuffix(unix int64) string {
	at := time.Unix(unix, 0).UTC()
	switch {
	case unix <= 0 || at.Year() > 9999:
		return ""
	case at.Second() != 0:
		return at.Format(" (2006-01-02 15:04:05 UTC)")
	}
	return at.Format(" (2006-01-02 15:04 UTC)")
}

// trimSpan returns a span without white space at its ends.
func trimSpan(units []uint16, s span) span {
	for s.from < s.to && unicode.IsSpace(rune(units[s.from])) {
		s.from++
	}
	for s.from < s.to && unicode.IsSpace(rune(units[s.to-1])) {
		s.to--
	}
	return s
}

// lineStart returns a line break unless a line begins at the position.
func lineStart(units []uint16, at, from int) string {
	if at <= from || units[at-1] == '\n' {
		return ""
	}
	return "\n"
}

// lineEnd returns what separates a block that ends at the position from the text after it: that text follows after
// the line breaks want.
func lineEnd(units []uint16, at, to int, want string) string {
	rest := trimSpan(units, span{at, to})
	if rest.from == rest.to {
		return ""
	}
	for ; at < to && units[at] == '\n' && want != ""; at++ {
		want = want[1:]
	}
	return want
}

// applyEdits applies the edits, which are sorted by position, within a range.
func applyEdits(units []uint16, edits []edit, from, to int) string {
	var b strings.Builder
	for _, e := range edits {
		b.WriteString(string(utf16.Decode(units[from:e.from])))
		b.WriteString(e.text)
		from = e.to
	}
	b.WriteString(string(utf16.Decode(units[from:to])))
	return b.String()
}
