package moving

import (
	"regexp"
	"slices"
	"strings"
	"time"
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
	texts, unmarked := splitNotes(string(data))
	if unmarked > 0 {
		f.leave(KindMemory, name, "%s in it with no line before that says when they were observed, and that they are active", wording.Plural(unmarked, "text", "texts"))
	}
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
// paragraphs, each with the headings above it. A text that is too long for a note becomes several. If any
// text is marked as active or not, only the active ones are notes, and unmarked counts the texts without a mark.
func splitNotes(text string) (notes []string, unmarked int) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
	var entries []string
	if strings.Contains(text, delimiter) {
		entries = strings.Split(text, delimiter)
	} else {
		entries, unmarked = splitMarkdown(text)
	}
	for _, entry := range entries {
		for entry = strings.TrimSpace(entry); entry != ""; {
			var part string
			part, entry = wording.SplitAt(entry, memory.MaxNoteLength)
			notes = append(notes, strings.TrimSpace(part))
		}
	}
	return notes, unmarked
}

// mark is the comment that stands before each entry of OpenClaw's USER.md.
var mark = regexp.MustCompile(`^<!--\s*observed:\s*(\S+)\s*\|\s*status:\s*(\S+)\s*-->$`)

// splitMarkdown returns list items and paragraphs with the headings above them, without comments and front
// matter, as [splitNotes] does.
func splitMarkdown(text string) (entries []string, unmarked int) {
	var active []string
	marked, isActive, isMarked := false, false, false // of any entry, of the next one
	var headings [6]string                            // by level
	var block []string
	flush := func() {
		if len(block) > 0 {
			entry := below(headings[:], strings.Join(block, "\n"))
			switch {
			case isActive:
				active = append(active, entry)
			case !isMarked:
				entries = append(entries, entry)
			}
			isActive, isMarked = false, false
		}
		block = nil
	}
	fenced, comment := false, false
	for line := range strings.SplitSeq(withoutFrontMatter(text), "\n") {
		trimmed := strings.TrimSpace(line)
		level := headingLevel(trimmed)
		isFence := strings.HasPrefix(trimmed, "```")
		switch {
		case comment:
			comment = !strings.Contains(line, "-->")
		case !fenced && strings.HasPrefix(trimmed, "<!--"):
			flush()
			comment = !strings.Contains(line, "-->")
			if m := mark.FindStringSubmatch(trimmed); m != nil {
				_, err := time.Parse(time.DateOnly, m[1])
				marked, isMarked, isActive = true, true, err == nil && m[2] == "active"
			}
		case isFence || fenced:
			fenced = fenced != isFence
			block = append(block, line)
		case trimmed == "" || strings.Trim(trimmed, "-*_") == "":
			flush()
		case level > 0:
			flush()
			clear(headings[level-1:])
			title := strings.TrimSpace(trimmed[level:])
			if first, _, _ := strings.Cut(title, " "); !strings.HasSuffix(first, ".md") { // the name of the file
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
	if marked {
		return active, len(entries)
	}
	return entries, 0
}

func withoutFrontMatter(text string) string {
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		if _, after, ends := strings.Cut(rest, "\n---\n"); ends {
			return after
		}
	}
	return text
}

// headingLevel returns 1 to 6 for a line that is a heading, and 0 for others.
func headingLevel(line string) int {
	level := len(line) - len(strings.TrimLeft(line, "#"))
	if level > 6 || !strings.HasPrefix(line[level:], " ") {
		return 0
	}
	return level
}

// below returns an entry behind the headings above it.
func below(headings []string, entry string) string {
	above := slices.DeleteFunc(slices.Clone(headings), func(h string) bool { return h == "" })
	if len(above) == 0 {
		return entry
	}
	return strings.Join(above, " > ") + ": " + entry
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
