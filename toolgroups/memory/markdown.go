package memory

import (
	"strings"
	"unicode"
)

// Sections that the code refers to.
const (
	SectionProfile = "User Profile"
	sectionHabits  = "Habits/Routines"
	SectionNotes   = "Notes"
)

// sections returns the sections in their order.
func sections() []string {
	return []string{SectionProfile, "Preferences", "Interests", sectionHabits, "Projects", SectionNotes}
}

// sectionOf returns the section for a category, Notes for an unknown one.
func sectionOf(name string) string {
	name = foldText(name)
	switch name {
	case "profile":
		return SectionProfile
	case "habits", "routines", "workflow":
		return sectionHabits
	}
	for _, s := range sections() {
		if foldText(s) == name {
			return s
		}
	}
	return SectionNotes
}

// cleanText removes trailing spaces, blank lines, and control characters other than line breaks, so
// that a note is one list item.
func cleanText(text string) string {
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

// listItem formats a note as a list item, with all lines but the first indented.
func listItem(text string) string { return "- " + strings.ReplaceAll(text, "\n", "\n  ") }

// renderMarkdown formats notes as Markdown, section by section.
func renderMarkdown(notes []Note) string {
	var parts []string
	for _, section := range sections() {
		var lines []string
		for _, n := range notes {
			if n.Section == section {
				lines = append(lines, listItem(n.Text))
			}
		}
		if len(lines) > 0 {
			parts = append(parts, "## "+section+"\n\n"+strings.Join(lines, "\n"))
		}
	}
	return strings.Join(parts, "\n\n")
}
