package memory

import (
	"strings"
	"unicode"
)

// Sections of a memory that have other names, or none.
const (
	SectionProfile = "User Profile"
	SectionHabits  = "Habits/Routines"
	SectionNotes   = "Notes"
)

// Sections returns the sections in their order.
func Sections() []string {
	return []string{SectionProfile, "Preferences", "Interests", SectionHabits, "Projects", SectionNotes}
}

// sectionOf finds the section that a category means.
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

// clean keeps the line breaks of a text and no other control characters, no space
// at the end of a line, and no blank lines: a note is one item of a list.
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

// item is a note as an item of a list, its further lines indented.
func item(text string) string { return "- " + strings.ReplaceAll(text, "\n", "\n  ") }

// render writes notes as Markdown, section by section.
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
