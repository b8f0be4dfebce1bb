package markdown

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// zeroWidthSpace is a character that platforms keep but do not show.
// They recognise neither a name nor a formatting mark across it.
const zeroWidthSpace = '\u200b'

// traits are simple differences between platforms.
type traits struct {
	maxSpans         int    // bound of the spans of a part; 0 for none
	maxSpanBytes     int    // bound of the size of the spans of a part with their addresses; 0 for none
	markupCounts     bool   // the limit counts the markup
	inlineEndsAtLine bool   // inline markup ends at a line end
	wordMarks        bool   // inline marks only count at word boundaries
	quoteMark        byte   // begins each line of a quote
	plainEscaped     bool   // & < > are escaped in plain text too
	deleted          string // characters that the platform deletes
}

// position is the next character with its context.
type position struct {
	prev, last     rune   // the previous two characters
	rest           string // the text from that character on
	atomStart      bool   // it begins an atom
	inCode         bool   // in code
	inPlainText    bool   // in the plain text, where nothing is code
	ambiguousMarks bool   // see atom
}

func (p position) next() rune {
	r, _ := utf8.DecodeRuneInString(p.rest)
	return r
}

// rules is the markup of a platform.
type rules interface {
	traits() traits
	// allowedParent returns the span in which a span of the style may be
	// placed if it is requested in parent; false if it may not be placed.
	allowedParent(parent *span, s style) (*span, bool)
	// href returns an address as it is written in the markup;
	// false if the platform does not accept it as a link.
	href(url string) (string, bool)
	// markup returns the opening and closing markup of a span.
	markup(s *span) (open, shut string)
	// literal returns where in a word stands what the platform would make a link or a command of although it is a
	// name of a file or a package; from equals to if there is none. It is shown as code.
	literal(word string) (from, to int)
	// needsMentionGuard reports whether a zero-width space must precede the character at p.
	needsMentionGuard(p position) bool
}

func urlScheme(url string) string {
	before, _, found := strings.Cut(url, ":")
	if !found {
		return ""
	}
	return strings.ToLower(before)
}

// isWebURL reports whether url is a web address with a host.
func isWebURL(url string) bool {
	name := urlScheme(url)
	host, found := strings.CutPrefix(url[min(len(url), len(name)):], "://")
	return (name == "http" || name == "https") && found && host != "" && !strings.ContainsRune("/?#:", rune(host[0]))
}

// isWordRune reports whether r can be part of a user name.
func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// UTF16Len returns the length of s in UTF-16 units, by which platforms measure texts.
func UTF16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
