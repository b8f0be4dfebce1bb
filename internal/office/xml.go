package office

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
)

const (
	// maxDepth is how deep elements may be nested: readers recurse with them.
	maxDepth = 256
	// maxToken is how many bytes an element's own text or attributes may have.
	maxToken = 8 << 20
)

// scanner reads XML within limits. Names are compared without their namespace.
type scanner struct {
	decoder *xml.Decoder
	input   *gauge
	depth   int
}

// gauge counts what is read for a token.
type gauge struct {
	from io.Reader
	used int
}

// Read fails for a token that is too long.
func (g *gauge) Read(p []byte) (int, error) {
	if g.used > maxToken {
		return 0, errLong
	}
	n, err := g.from.Read(p)
	g.used += n
	return n, err
}

func newScanner(from io.Reader) *scanner {
	g := &gauge{from: from}
	d := xml.NewDecoder(g)
	d.CharsetReader = charset.NewReaderLabel
	return &scanner{decoder: d, input: g}
}

// next returns the next token, io.EOF behind the last.
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

// children calls do with each element in the present one. It may read the element, and what
// it leaves is skipped.
func (s *scanner) children(do func(xml.StartElement) error) error {
	return s.content(do, nil)
}

// content is [scanner.children] that also tells the text between elements.
func (s *scanner) content(do func(xml.StartElement) error, said func(string)) error {
	within := s.depth
	for {
		token, err := s.next()
		switch {
		case err == io.EOF && within == 0:
			return nil
		case err == io.EOF:
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
				if _, err := s.next(); err == io.EOF {
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

// text is all text in the present element.
func (s *scanner) text() (string, error) {
	var b strings.Builder
	var within func(xml.StartElement) error
	say := func(text string) { b.WriteString(text) }
	within = func(xml.StartElement) error { return s.content(within, say) }
	err := s.content(within, say)
	return b.String(), err
}

// attr is an attribute of an element, whatever its namespace.
func attr(el xml.StartElement, name string) string {
	for _, a := range el.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// off reports whether a property says that it does not hold.
func off(el xml.StartElement) bool {
	switch attr(el, "val") {
	case "0", "false", "off":
		return true
	}
	return false
}
