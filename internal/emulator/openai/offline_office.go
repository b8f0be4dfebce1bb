package openai

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	officeName = regexp.MustCompile(`(?i)[\w./-]+\.(?:docx|xlsx|pptx|odt|ods|odp|epub|rtf|csv)\b`)
	asWorkbook = regexp.MustCompile(`(?i)\b(workbook|excel|xlsx)\b`)
	asWord     = regexp.MustCompile(`(?i)\b(word|docx)\b`)
	formatLine = regexp.MustCompile(`(?s)^File: [^\n]*\nFormat: ([^\n]*)\n\n(.*)$`)
)

// officeFile returns the office file that a message is about: the named file, the newest file sent
// with the message or, for questions that only a document can answer, the newest of all files.
func (t *turn) officeFile() string {
	if named := officeName.FindString(t.said); named != "" {
		for _, file := range slices.Backward(t.files) {
			if path.Base(file) == path.Base(named) {
				return file
			}
		}
		return named
	}
	asks := aboutIt.MatchString(t.said) || searchPattern.MatchString(t.said)
	switch {
	case len(t.sentFiles) > 0:
		return officeName.FindString(t.sentFiles[len(t.sentFiles)-1])
	case asks && len(t.files) > 0:
		return officeName.FindString(t.files[len(t.files)-1])
	}
	return ""
}

// readOffice shows the beginning of a document, or the passages that contain the sought words.
func (t *turn) readOffice() Reply {
	doc := t.officeFile()
	name := "**" + path.Base(doc) + "**"
	if m := searchPattern.FindStringSubmatch(t.said); m != nil {
		return t.useGroupTool("documents", "search_document", map[string]any{"path": doc, "query": m[1]}, func(text string) string {
			text, _, _ = strings.Cut(text, "\n\n[")
			return shorten(text, 1500)
		})
	}
	return t.useGroupTool("documents", "read_document", map[string]any{"path": doc}, func(text string) string {
		m := formatLine.FindStringSubmatch(text)
		if m == nil {
			return fmt.Sprintf("I could not look into %s: %s", name, firstLine(text))
		}
		return fmt.Sprintf("%s (%s) begins:\n\n%s", name, m[1], shorten(m[2], 1200))
	})
}

// wantsTableFile reports whether the user wants a table as a file.
func (t *turn) wantsTableFile() bool {
	return tablePattern.MatchString(t.said) && officeName.FindString(t.said) == "" && (asWorkbook.MatchString(t.said) || asWord.MatchString(t.said))
}

// writeTableFile writes a table to a file, which is sent to the chat.
func (t *turn) writeTableFile() Reply {
	table := t.writeTable()
	if !strings.HasPrefix(table.Text, "|") {
		return table
	}
	file := "table.docx"
	if asWorkbook.MatchString(t.said) {
		file = "table.xlsx"
	}
	return t.useGroupTool("documents", "write_document", map[string]any{"path": file, "content": "# Table\n\n" + table.Text}, func(text string) string {
		if !strings.HasPrefix(text, "Saved") {
			return "I could not write it: " + firstLine(text)
		}
		return fmt.Sprintf("Here is **%s**. \"Read %[1]s\" shows what is in it.", file)
	})
}
