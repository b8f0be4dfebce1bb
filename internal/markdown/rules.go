package markdown

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// invisible is the zero-width space. Platforms keep and do not show it, and recognise neither a
// name nor a formatting mark across it.
const invisible = '\u200b'

// traits are simple differences between platforms.
type traits struct {
	maxSpans     int  // bound of the spans of a part; 0 for none
	markupCounts bool // the limit counts the markup
	lineBound    bool // inline markup ends at a line end
	wordMarks    bool // inline marks only count at word boundaries
	quoteMark    byte // begins each line of a quote
	plainEscaped bool // & < > are escaped in plain text too
}

// place is the position of the next character.
type place struct {
	prev, last rune   // the previous two characters
	rest       string // the text from that character on
	first      bool   // it begins an atom
	code       bool   // in code
	plain      bool   // in the plain text, where nothing is code
	marks      bool   // see atom
}

func (p place) next() rune {
	r, _ := utf8.DecodeRuneInString(p.rest)
	return r
}

// rules is the markup of a platform.
type rules interface {
	traits() traits
	// within returns the span in which a span of the style can be placed when it is requested in
	// parent; false if it cannot.
	within(parent *span, s style) (*span, bool)
	// href returns an address as the markup writes it; false if the platform does not accept it as
	// a link.
	href(url string) (string, bool)
	// markup returns the opening and closing markup of a span.
	markup(s *span) (open, shut string)
	// needsMentionGuard reports whether an invisible character must precede p.
	needsMentionGuard(p place) bool
}

func scheme(url string) string {
	before, _, found := strings.Cut(url, ":")
	if !found {
		return ""
	}
	return strings.ToLower(before)
}

// web reports whether url has a host as a web address must.
func web(url string) bool {
	name := scheme(url)
	host, found := strings.CutPrefix(url[min(len(url), len(name)):], "://")
	return (name == "http" || name == "https") && found && host != "" && !strings.ContainsRune("/?#:", rune(host[0]))
}

// wordRune reports whether r can be part of a user name.
func wordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// Units returns the UTF-16 length of s, which platforms count.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
