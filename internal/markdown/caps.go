package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// MaxInput bounds a text that is parsed as Markdown, in bytes. A longer one becomes plain
// paragraphs.
const MaxInput = 256 << 10

// The parser takes quadratic time in the containers opened on a line and in the delimiters of a
// paragraph, and a table has as many cells as columns times rows. These limits keep each within
// milliseconds.
const (
	maxContainers = 64
	maxDelimiters = 4096
	maxCells      = 100_000
	maxNesting    = 32
)

// isCostly reports whether text is too expensive to parse as Markdown. What is in a fence is not parsed, and makes
// nothing expensive: cards show there what models write.
func isCostly(s string) bool {
	if len(s) > MaxInput {
		return true
	}
	run, fence, html := 0, "", false
	for line := range strings.Lines(s) {
		if fence != "" {
			if closesFence(line, fence) {
				fence = ""
			}
			continue
		}
		// Tags may begin a block that hides a fence from the parser.
		html = html || strings.HasPrefix(strings.TrimLeft(line, " "), "<")
		if fence = opensFence(line); fence != "" && !html {
			run = 0
			continue
		}
		fence = ""
		containers, rest := countContainers(line)
		rest = strings.TrimSpace(rest)
		n := countDelimiters(rest)
		if containers > maxContainers || n > maxDelimiters {
			return true
		}
		// An underline makes a heading of all lines before it, which the paragraph transformer does
		// not see.
		if run > maxDelimiters && strings.Trim(rest, "=-") == "" {
			return true
		}
		if run += n; rest == "" {
			run = 0
		}
	}
	return false
}

// opensFence returns the marks of a fence that a line at the margin opens, so that it is in no list or quote.
func opensFence(line string) string {
	info := strings.TrimLeft(line, line[:1])
	marks := line[:len(line)-len(info)]
	if len(marks) < 3 || marks[0] != '`' && marks[0] != '~' || marks[0] == '`' && strings.Contains(info, "`") {
		return ""
	}
	return marks
}

// closesFence reports whether a line closes a fence.
func closesFence(line, fence string) bool {
	marks := strings.TrimLeft(line, " ")
	rest := strings.TrimLeft(marks, fence[:1])
	return len(line)-len(marks) < 4 && len(marks)-len(rest) >= len(fence) && strings.TrimSpace(rest) == ""
}

// countContainers counts the quote and list markers that begin a line and returns the rest.
func countContainers(line string) (int, string) {
	n := 0
	for {
		line = strings.TrimLeft(line, " \t")
		size := markerLen(line)
		if size == 0 {
			return n, line
		}
		n++
		line = line[size:]
	}
}

// markerLen returns the length of the container marker that begins line.
func markerLen(line string) int {
	digits := 0
	for digits < len(line) && digits < 9 && line[digits] >= '0' && line[digits] <= '9' {
		digits++
	}
	rest := line[digits:]
	switch {
	case rest == "":
		return 0
	case digits == 0 && rest[0] == '>':
		return 1
	case digits == 0 && !strings.ContainsRune("-+*", rune(rest[0])):
		return 0
	case digits > 0 && rest[0] != '.' && rest[0] != ')':
		return 0
	case len(rest) > 1 && !strings.ContainsRune(" \t\n", rune(rest[1])):
		return 0
	}
	return digits + 1
}

// countDelimiters counts what may open or close an inline element: runs of * _ ~ or `, and each of
// [ ] and <.
func countDelimiters(s string) int {
	n := 0
	for i := range len(s) {
		switch s[i] {
		case '*', '_', '~', '`':
			if i == 0 || s[i-1] != s[i] {
				n++
			}
		case '[', ']', '<':
			n++
		}
	}
	return n
}

// costGuard replaces paragraphs that exceed the limits by
// verbatim text before their inline content is parsed.
type costGuard struct{}

var _ parser.ParagraphTransformer = costGuard{}

// Transform replaces the paragraph if it exceeds the limits.
func (costGuard) Transform(n *ast.Paragraph, reader text.Reader, _ parser.Context) {
	lines, delims, cells := n.Lines(), 0, 0
	for i := range lines.Len() {
		segment := lines.At(i)
		line := segment.Value(reader.Source())
		delims += countDelimiters(string(line))
		if trimmed := strings.Trim(string(line), "|:- \t\n"); trimmed == "" {
			cells = max(cells, (strings.Count(string(line), "|")+1)*lines.Len())
		}
	}
	if delims <= maxDelimiters && cells <= maxCells {
		return
	}
	verbatim := ast.NewHTMLBlock(ast.HTMLBlockType7)
	verbatim.SetLines(lines)
	if parent := n.Parent(); parent != nil {
		parent.ReplaceChild(parent, n, verbatim)
	}
}
