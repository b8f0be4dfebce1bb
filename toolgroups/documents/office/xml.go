package office

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/net/html/charset"
)

const (
	// maxDepth bounds the nesting of elements, because readers recurse.
	maxDepth = 256
	// maxToken bounds an element's own text or attributes, in bytes.
	maxToken = 8 << 20
)

// scanner reads XML within limits. It ignores namespaces.
type scanner struct {
	decoder *xml.Decoder
	input   *tokenReader
	depth   int
}

// tokenReader bounds the bytes of a token.
type tokenReader struct {
	from io.Reader
	used int
}

// Read fails for a token that is too long.
func (g *tokenReader) Read(p []byte) (int, error) {
	if g.used > maxToken {
		return 0, errLong
	}
	n, err := g.from.Read(p)
	g.used += n
	return n, err
}

func newScanner(from io.Reader) *scanner {
	g := &tokenReader{from: from}
	d := xml.NewDecoder(g)
	d.CharsetReader = charset.NewReaderLabel
	return &scanner{decoder: d, input: g}
}

// next returns the next token, or io.EOF at the end.
func (s *scanner) next() (xml.Token, error) {
	s.input.used = 0
	token, err := s.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case xml.StartElement:
		if s.depth++; s.depth > maxDepth {
			return nil, errDeep
		}
	case xml.EndElement:
		s.depth--
	case xml.Directive:
		if bytes.Contains(bytes.ToUpper(t), []byte("<!ENTITY")) {
			return nil, errEntities
		}
	}
	return token, nil
}

// eachChild calls do with each child element of the current
// one. do may read the element; what it leaves is skipped.
func (s *scanner) eachChild(do func(xml.StartElement) error) error {
	return s.eachChildAndText(do, nil)
}

// eachChildAndText is [scanner.eachChild], but also calls said with the text between elements.
func (s *scanner) eachChildAndText(do func(xml.StartElement) error, said func(string)) error {
	within := s.depth
	for {
		token, err := s.next()
		switch {
		case errors.Is(err, io.EOF) && within == 0:
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if err := do(t); err != nil {
				return err
			}
			for s.depth > within {
				if _, err := s.next(); errors.Is(err, io.EOF) {
					return io.ErrUnexpectedEOF
				} else if err != nil {
					return err
				}
			}
		case xml.CharData:
			if said != nil {
				said(string(t))
			}
		case xml.EndElement:
			return nil
		}
	}
}

// readText returns all text in the current element.
func (s *scanner) readText() (string, error) {
	var b strings.Builder
	var within func(xml.StartElement) error
	say := func(text string) { b.WriteString(text) }
	within = func(xml.StartElement) error { return s.eachChildAndText(within, say) }
	err := s.eachChildAndText(within, say)
	return b.String(), err
}

// attr returns an attribute of an element, ignoring its namespace.
func attr(el xml.StartElement, name string) string {
	for _, a := range el.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// isOff reports whether a boolean property is off.
func isOff(el xml.StartElement) bool {
	switch attr(el, "val") {
	case "0", "false", "off":
		return true
	}
	return false
}

// escapedCharacter matches a character that Office writes by its number, as _x000D_.
var escapedCharacter = regexp.MustCompile(`_x([0-9A-Fa-f]{4})_`)

// unescapeCharacters returns a text of a workbook or a drawing with the characters that Office writes by
// their numbers. The underscore of a text that only looks so is written in this way itself.
func unescapeCharacters(text string) string {
	if !strings.Contains(text, "_x") {
		return text
	}
	return escapedCharacter.ReplaceAllStringFunc(text, func(escaped string) string {
		n, err := strconv.ParseUint(escaped[2:6], 16, 16)
		if err != nil || utf16.IsSurrogate(rune(n)) {
			return escaped
		}
		return string(rune(n))
	})
}
