package office

import (
	"encoding/xml"

	"oneclaw/internal/formula"
)

// readFormula reads the content of the element el of Office's language or MathML, and returns it on one line.
func readFormula(s *scanner, el xml.StartElement) (string, error) {
	left := formula.MaxElements
	var read func(into *formula.Element) error
	read = func(into *formula.Element) error {
		return s.eachChildAndText(func(el xml.StartElement) error {
			if left--; left < 0 {
				return nil
			}
			part := newElement(el)
			into.Parts = append(into.Parts, part)
			return read(part)
		}, func(text string) {
			if len(into.Text) > maxBlock {
				left = -1
			}
			if left >= 0 {
				into.Text += text
			}
		})
	}
	whole := newElement(el)
	if err := read(whole); err != nil {
		return "", err
	}
	if left < 0 {
		return formula.Unread, nil
	}
	return whole.Line(), nil
}

func newElement(el xml.StartElement) *formula.Element {
	e := &formula.Element{Name: el.Name.Local}
	for _, a := range el.Attr {
		if e.Attrs == nil {
			e.Attrs = map[string]string{}
		}
		e.Attrs[a.Name.Local] = a.Value
	}
	return e
}
