package openai

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	officeName   = regexp.MustCompile(`(?i)[\w./-]+\.(?:docx|xlsx|pptx|odt|ods|odp|epub|rtf|csv)\b`)
	asWorkbook   = regexp.MustCompile(`(?i)\b(workbook|excel|xlsx|spreadsheet)\b`)
	sheetWanted  = regexp.MustCompile(`(?i)\b(?:make|create|write|give|turn|build|put|save)\b.*\b(?:workbook|excel|xlsx|spreadsheet)\b`)
	tablePattern = regexp.MustCompile(`(?i)\btable\b`)
	rowsPattern  = regexp.MustCompile(`(?is)\b(?:table|workbook|excel|spreadsheet|document)[^:]*:\s*(.+)$`)
	asWord       = regexp.MustCompile(`(?i)\b(word|docx)\b`)
	formatLine   = regexp.MustCompile(`(?s)^File: [^\n]*\nFormat: ([^\n]*)\n\n(.*)$`)
)

// officeFile returns the office file that a message is about: the named file, the newest file sent
// with the message or, for questions that only a document can answer, the newest of all files.
func (t *turn) officeFile() string {
	if named := t.namedFile(officeName); named != "" {
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

// readOffice answers from a document, or shows its beginning, or the passages that contain the sought words.
func (t *turn) readOffice(doc string) string {
	if m := searchPattern.FindStringSubmatch(t.said); m != nil {
		text, _, _ := strings.Cut(t.useOf("documents", "search_document", map[string]any{"path": doc, "query": m[1]}), "\n\n[")
		return shorten(text, 1500)
	}
	name, base := "**"+path.Base(doc)+"**", path.Base(doc)
	text := t.useOf("documents", "read_document", map[string]any{"path": doc})
	m := formatLine.FindStringSubmatch(text)
	if m == nil {
		return fmt.Sprintf("I could not look into %s: %s", name, firstLine(text))
	}
	// A message that names the file, or asks what it is about, wants to see it.
	if !aboutIt.MatchString(t.said) && officeName.FindString(t.said) == "" {
		_, answered := t.answerFrom(base, m[2])
		if answered && !wantsSummary.MatchString(t.said) || question.MatchString(t.said) && len(contentWords(t.said)) > 0 {
			return t.answerOrNot(base, m[2])
		}
	}
	return fmt.Sprintf("%s (%s) begins:\n\n%s", name, m[1], shorten(m[2], 1200))
}

// wantsTableFile reports whether the user wants a table or a list as a file.
func (t *turn) wantsTableFile() bool {
	return (tablePattern.MatchString(t.said) || sheetWanted.MatchString(t.said)) && officeName.FindString(t.said) == "" &&
		(asWorkbook.MatchString(t.said) || asWord.MatchString(t.said))
}

// writeTableFile writes a table to a file, which is sent to the chat.
func (t *turn) writeTableFile() string {
	text, file := t.tableText(), "table.docx"
	if text == "" {
		return rowsText
	}
	if asWorkbook.MatchString(t.said) {
		file = "table.xlsx"
	}
	return t.do("documents", "write_document", map[string]any{"path": file, "content": "# Table\n\n" + text}, "Saved", "write it",
		fmt.Sprintf("Here is **%s**. \"Read %[1]s\" shows what is in it.", file))
}

// rowsText asks for the rows of a table.
const rowsText = "Give me the rows, as in \"table: name, age; Ann, 30; Bob, 31\", or paste a table first. " + cannot + setKey

// tableText returns the table that a message gives: after a colon, or pasted before; "" without one.
func (t *turn) tableText() string {
	if m := rowsPattern.FindStringSubmatch(t.said); m != nil && strings.Contains(m[1], ",") {
		return splitRows(m[1]).markdown()
	}
	for _, text := range append([]string{t.said}, textsOf(t.given)...) {
		if tb := parseTable(text); tb != nil {
			return tb.markdown()
		}
	}
	return ""
}
