package moving

import (
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups/memory"
)

// delimiter separates the entries of a memory of Hermes.
const delimiter = "\n§\n"

// maxHeading bounds a heading, which stands before each of its notes, in characters.
const maxHeading = 200

// addNotes adds a file of memory.
func (f *Found) addNotes(from *folder, name, section string) {
	data, err := from.file(name)
	if err != nil {
		f.leaveError(KindMemory, name, err)
		return
	}
	if !utf8.Valid(data) {
		f.leave(KindMemory, name, "it is not UTF-8 text")
		return
	}
	texts := splitNotes(string(data))
	if len(texts) > memory.MaxNotes {
		f.leave(KindMemory, name, "of its %d notes only the first %d fit", len(texts), memory.MaxNotes)
		texts = texts[:memory.MaxNotes]
	}
	file := noteFile{Name: name}
	for _, text := range texts {
		file.Notes = append(file.Notes, memory.Note{Section: section, Text: text})
	}
	if len(file.Notes) == 0 {
		f.leave(KindMemory, name, "there are no notes in it")
		return
	}
	f.Notes = append(f.Notes, file)
}

// splitNotes splits a memory into notes: entries between delimiters or, in Markdown, list items and
// paragraphs, each with the headings above it. A text that is too long for a note becomes several.
func splitNotes(text string) []string {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
	var entries []string
	if strings.Contains(text, delimiter) {
		entries = strings.Split(text, delimiter)
	} else {
		entries = splitMarkdown(text)
	}
	var notes []string
	for _, entry := range entries {
		for entry = strings.TrimSpace(entry); entry != ""; {
			var part string
			part, entry = wording.SplitAt(entry, memory.MaxNoteLength)
			notes = append(notes, strings.TrimSpace(part))
		}
	}
	return notes
}

// splitMarkdown returns list items and paragraphs with the headings above them.
func splitMarkdown(text string) []string {
	var entries []string
	var headings [6]string // by level
	var block []string
	flush := func() {
		if len(block) > 0 {
			entry := strings.Join(block, "\n")
			above := slices.DeleteFunc(slices.Clone(headings[:]), func(h string) bool { return h == "" })
			if path := strings.Join(above, " > "); path != "" {
				entry = path + ": " + entry
			}
			entries = append(entries, entry)
		}
		block = nil
	}
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		level := len(trimmed) - len(strings.TrimLeft(trimmed, "#"))
		isFence := strings.HasPrefix(trimmed, "```")
		switch {
		case isFence || fenced:
			fenced = fenced != isFence
			block = append(block, line)
		case trimmed == "" || strings.Trim(trimmed, "-*_") == "":
			flush()
		case level > 0 && level <= len(headings) && strings.HasPrefix(trimmed[level:], " "):
			flush()
			clear(headings[level-1:])
			if title := strings.TrimSpace(trimmed[level:]); !strings.HasSuffix(title, ".md") {
				headings[level-1] = wording.Clip(title, maxHeading)
			}
		default:
			if item, ok := listItem(line); ok {
				flush()
				trimmed = item
			}
			block = append(block, trimmed)
		}
	}
	flush()
	return entries
}

// listItem returns the text of an item of a list that is not part of another item.
func listItem(line string) (string, bool) {
	for _, bullet := range []string{"- ", "* ", "+ "} {
		if item, ok := strings.CutPrefix(line, bullet); ok {
			return strings.TrimSpace(item), true
		}
	}
	number, item, ok := strings.Cut(line, ". ")
	return strings.TrimSpace(item), ok && number != "" && strings.Trim(number, "0123456789") == ""
}
