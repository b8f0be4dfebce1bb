package office

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// pptxReader reads a PPTX file.
type pptxReader struct {
	*zipDocument
	out  *emitter
	rels map[string]relation // of the current slide
}

func (p *zipDocument) readSlides(main string, s *scanner, out *emitter) error {
	var ids []string
	err := s.eachChild(func(el xml.StartElement) error {
		if el.Name.Local != "sldIdLst" {
			return nil
		}
		return s.eachChild(func(el xml.StartElement) error {
			ids = append(ids, relationID(el))
			return nil
		})
	})
	if err != nil {
		return err
	}
	all, err := p.readRelations(main)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := (&pptxReader{zipDocument: p, out: out}).readSlide(all[id].target); err != nil {
			return err
		}
	}
	return nil
}

func (d *pptxReader) readSlide(name string) (err error) {
	if d.rels, err = d.readRelations(name); err != nil {
		return err
	}
	wanted := false
	err = d.scan(name, func(s *scanner) error {
		return s.eachChild(func(root xml.StartElement) error {
			wanted = d.out.beginPart("", attr(root, "show") == "0")
			if !wanted {
				return nil
			}
			return s.eachChild(d.shapeReader(s, &shape{}))
		})
	})
	if notes := relatedFile(d.rels, "notesSlide"); err == nil && wanted && notes != "" {
		return d.readNotes(notes)
	}
	return err
}

// shape is the state of a shape while it is read.
type shape struct {
	isPlaceholder bool   // it is a placeholder
	kind          string // of the placeholder
	onNotesPage   bool   // it is on the notes page
	afterItem     bool   // the last paragraph was an item
}

// shapeReader returns a function that reads the shapes of a slide in drawing order.
func (d *pptxReader) shapeReader(s *scanner, in *shape) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "sp":
			return s.eachChild(d.shapeReader(s, &shape{onNotesPage: in.onNotesPage}))
		case "ph":
			in.isPlaceholder, in.kind = true, attr(el, "type")
		case "cNvPr":
			if said := oneLine(attr(el, "descr")); said != "" && !in.onNotesPage {
				return d.out.addParagraph(fmt.Sprintf("[picture: %s]", said), false)
			}
		case "p":
			return d.readParagraph(s, in)
		case "tbl":
			return d.readTable(s)
		case "chart":
			return d.readChart(d.rels[relationID(el)].target)
		case "relIds": // of a diagram
			return d.scanOptional(d.rels[attr(el, "dm")].target, func(s *scanner) error {
				return s.eachChild(d.shapeReader(s, &shape{}))
			})
		case "Fallback":
		default:
			return s.eachChild(read)
		}
		return nil
	}
	return read
}

// readParagraph reads a paragraph of a shape.
func (d *pptxReader) readParagraph(s *scanner, in *shape) error {
	text, depth, mark, err := readDrawingText(s)
	if err != nil || tidy(text) == "" {
		return err
	}
	tight := in.afterItem
	in.afterItem = false
	switch in.kind {
	case "title", "ctrTitle":
		return d.out.addHeading(1, text)
	case "sldNum", "dt", "ftr", "hdr", "sldImg":
		return nil
	}
	switch {
	case in.onNotesPage:
		return d.out.addParagraph("Notes: "+text, false)
	case mark == bulletSet, mark == bulletInherited && in.isPlaceholder && (in.kind == "" || in.kind == "body" || in.kind == "obj"):
		in.afterItem = true
		return d.out.addItem(depth, bullet, text, tight)
	}
	return d.out.addParagraph(text, false)
}

// Whether a paragraph has a bullet.
const (
	bulletInherited = iota
	bulletSet
	bulletNone
)

// readDrawingText returns the text of a DrawingML paragraph, its depth, and whether it has a bullet.
func readDrawingText(s *scanner) (text string, depth, mark int, err error) {
	var b strings.Builder
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "t":
			text, err := s.readText()
			b.WriteString(text)
			return err
		case "br":
			b.WriteByte('\n')
		case "pPr":
			depth, _ = strconv.Atoi(attr(el, "lvl"))
			return s.eachChild(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "buChar", "buAutoNum", "buBlip":
					mark = bulletSet
				case "buNone":
					mark = bulletNone
				}
				return nil
			})
		case "rPr", "endParaRPr":
		default:
			return s.eachChild(read)
		}
		return nil
	}
	err = s.eachChild(read)
	return b.String(), depth, mark, err
}

func (d *pptxReader) readTable(s *scanner) error {
	t := table{out: d.out}
	return s.eachChild(func(el xml.StartElement) error {
		if el.Name.Local != "tr" {
			return nil
		}
		var cells []string
		err := s.eachChild(func(el xml.StartElement) error {
			if el.Name.Local != "tc" {
				return nil
			}
			var lines []string
			var read func(el xml.StartElement) error
			read = func(el xml.StartElement) error {
				if el.Name.Local != "p" {
					return s.eachChild(read)
				}
				text, _, _, err := readDrawingText(s)
				lines = append(lines, text)
				return err
			}
			err := s.eachChild(read)
			cells = append(cells, cellText(strings.Join(lines, "\n")))
			return err
		})
		if err != nil {
			return err
		}
		return t.addRow(cells)
	})
}

// readChart writes the values saved with a chart.
func (d *pptxReader) readChart(name string) error {
	return d.scanOptional(name, func(s *scanner) error {
		var series []string
		var read func(el xml.StartElement) error
		read = func(el xml.StartElement) error {
			if el.Name.Local != "ser" {
				return s.eachChild(read)
			}
			text, err := readSeries(s)
			series = append(series, text)
			return err
		}
		if err := s.eachChild(read); err != nil || len(series) == 0 {
			return err
		}
		return d.out.addParagraph("[chart: "+strings.Join(series, "; ")+"]", false)
	})
}

// readSeries reads the points of a chart's series.
func readSeries(s *scanner) (string, error) {
	found := map[string][]string{}
	err := s.eachChild(func(el xml.StartElement) error {
		part := el.Name.Local
		var read func(el xml.StartElement) error
		read = func(el xml.StartElement) error {
			if el.Name.Local != "v" {
				return s.eachChild(read)
			}
			text, err := s.readText()
			found[part] = append(found[part], oneLine(text))
			return err
		}
		switch part {
		case "tx", "cat", "val", "xVal", "yVal":
			return s.eachChild(read)
		}
		return nil
	})
	labels, values := append(found["cat"], found["xVal"]...), append(found["val"], found["yVal"]...)
	for i, value := range values {
		if i < len(labels) {
			values[i] = labels[i] + " " + value
		}
	}
	return strings.TrimPrefix(strings.Join(found["tx"], " ")+": ", ": ") + strings.Join(values, ", "), err
}

// readNotes reads the speaker notes.
func (d *pptxReader) readNotes(name string) error {
	return d.scanOptional(name, func(s *scanner) error {
		return s.eachChild(d.shapeReader(s, &shape{onNotesPage: true}))
	})
}
