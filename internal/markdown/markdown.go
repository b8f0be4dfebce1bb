// Package markdown parses the Markdown of an answer once and renders it for a chat platform in
// parts, each of which is a complete message.
//
// [Parse] never fails: text that is too expensive to parse as Markdown, or that makes the parser
// fail, becomes plain paragraphs. The renderings, [Document.TelegramHTML] and
// [Document.SlackMrkdwn], cut the tree: a part never ends inside a tag, an entity or a
// character, open formatting is closed at a cut and opened again, and no text is lost. A
// Document is immutable and may be used by several goroutines.
package markdown

import (
	"strings"
	"unicode"
)

// MinLimit is the smallest limit of a part; lower ones are raised to it, so that markup always
// leaves room for text.
const MinLimit = 64

// Document is a parsed answer.
type Document struct {
	source string
	root   *node
}

// Part is one message of an answer.
type Part struct {
	// Text is the part in the platform's markup.
	Text string
	// Plain is the part without markup, for a platform that refuses Text. It has the same limit.
	// Mentions stay inert, and so do those in code, because plain text has no code. The address of
	// a link follows its text in parentheses if there is room for all of them. For Slack the
	// characters & < > are escaped, because Slack interprets them in plain text too.
	Plain string
}

// Parse parses Markdown with tables, strikethrough, task lists and
// bare links. A text that consists only of markup becomes plain text.
func Parse(text string) *Document {
	text = normalize(text)
	root := parse(text, parseTree)
	if isBlank(root.flatText(false)) {
		root = plainTree(text)
	}
	return &Document{source: text, root: root}
}

// parse parses text with read or, if that fails or is too expensive, into plain paragraphs.
func parse(text string, read func(string) *node) (root *node) {
	if isCostly(text) {
		return plainTree(text)
	}
	defer func() {
		if recover() != nil {
			root = plainTree(text)
		}
	}()
	return read(text)
}

// normalize makes text valid UTF-8 with \n as the only line end and without control characters,
// which platforms refuse or replace by spaces.
func normalize(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, text)
}

// isBlank reports whether s has no visible character.
func isBlank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) })
}
