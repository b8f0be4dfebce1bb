package markdown

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// invisible is the zero-width space. Platforms keep it, show nothing for it,
// and neither a name nor a formatting mark is recognised across it.
const invisible = '\u200b'

// traits are the differences between platforms that are plain facts.
type traits struct {
	maxSpans     int  // how many spans a part may have; 0 for any number
	markupCounts bool // the limit counts the markup, not the text it shows
	lineBound    bool // inline markup ends with its line
	wordMarks    bool // inline marks are seen at the borders of words only
	quoteMark    byte // stands before each line of a quote
	plainEscaped bool // & < > are escaped in plain text too
}

// place is where the next character goes, for a decision about it.
type place struct {
	prev, last rune   // the two characters before
	rest       string // the text from that character on
	first      bool   // it begins an atom
	code       bool   // it stands in code
	plain      bool   // it goes to the plain text, where nothing is code
	marks      bool   // see atom
}

func (p place) next() rune {
	r, _ := utf8.DecodeRuneInString(p.rest)
	return r
}

// rules is a platform's markup.
type rules interface {
	traits() traits
	// within returns the span inside which a span of the style can stand
	// when it is asked for inside parent, and false if it cannot.
	within(parent *span, s style) (*span, bool)
	// href returns an address as the markup writes it, and false if the
	// platform does not take it as a link.
	href(url string) (string, bool)
	// markup returns what opens and what closes a span.
	markup(s *span) (open, shut string)
	// guard reports whether an invisible character must stand before p.
	guard(p place) bool
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

// Units returns the UTF-16 length of s, which is what platforms count.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
