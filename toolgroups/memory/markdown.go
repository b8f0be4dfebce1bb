package memory

import (
	"strings"
	"unicode"
)

// The sections: a default, and old names.
const (
	SectionProfile = "User Profile"
	SectionHabits  = "Habits/Routines"
	SectionNotes   = "Notes"
)

// Sections returns the sections in their order.
func Sections() []string {
	return []string{SectionProfile, "Preferences", "Interests", SectionHabits, "Projects", SectionNotes}
}

// sectionOf returns the section for a category.
func sectionOf(name string) string {
	name = folded(name)
	switch name {
	case "profile":
		return SectionProfile
	case "habits", "routines", "workflow":
		return SectionHabits
	}
	for _, s := range Sections() {
		if folded(s) == name {
			return s
		}
	}
	return SectionNotes
}

// clean drops control characters other than line breaks, trailing spaces and blank lines: a note
// is one list item.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// item formats a note as a list item, its further lines indented.
func item(text string) string { return "- " + strings.ReplaceAll(text, "\n", "\n  ") }

// render formats notes as Markdown, section by section.
func render(notes []Note) string {
	var parts []string
	for _, section := range Sections() {
		var lines []string
		for _, n := range notes {
			if n.Section == section {
				lines = append(lines, item(n.Text))
			}
		}
		if len(lines) > 0 {
			parts = append(parts, "## "+section+"\n\n"+strings.Join(lines, "\n"))
		}
	}
	return strings.Join(parts, "\n\n")
}
