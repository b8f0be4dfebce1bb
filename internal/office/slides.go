package office

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// slides reads a PPTX.
type slides struct {
	*pack
	out  *emitter
	rels map[string]relation // of the current slide
}

func (p *pack) readSlides(main string, s *scanner, out *emitter) error {
	var ids []string
	err := s.children(func(el xml.StartElement) error {
		if el.Name.Local != "sldIdLst" {
			return nil
		}
		return s.children(func(el xml.StartElement) error {
			ids = append(ids, relationID(el))
			return nil
		})
	})
	if err != nil {
		return err
	}
	all, err := p.relations(main)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := (&slides{pack: p, out: out}).readSlide(all[id].target); err != nil {
			return err
		}
	}
	return nil
}

func (d *slides) readSlide(name string) (err error) {
	if d.rels, err = d.relations(name); err != nil {
		return err
	}
	wanted := false
	err = d.scan(name, func(s *scanner) error {
		return s.children(func(root xml.StartElement) error {
			wanted = d.out.begin("", attr(root, "show") == "0")
			if !wanted {
				return nil
			}
			return s.children(d.shape(s, &shape{}))
		})
	})
	if notes := related(d.rels, "notesSlide"); err == nil && wanted && notes != "" {
		return d.readNotes(notes)
	}
	return err
}

// shape is the state of a shape while it is read.
type shape struct {
	holds  bool   // it is a placeholder
	kind   string // of the placeholder
	notes  bool   // it is on the notes page
	listed bool   // the last paragraph was an item
}

// shape reads the shapes of a slide in drawing order.
func (d *slides) shape(s *scanner, in *shape) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "sp":
			return s.children(d.shape(s, &shape{notes: in.notes}))
		case "ph":
			in.holds, in.kind = true, attr(el, "type")
		case "cNvPr":
			if said := line(attr(el, "descr")); said != "" && !in.notes {
				return d.out.paragraph(fmt.Sprintf("[picture: %s]", said), false)
			}
		case "p":
			return d.paragraph(s, in)
		case "tbl":
			return d.table(s)
		case "chart":
			return d.chart(d.rels[relationID(el)].target)
		case "relIds": // of a diagram
			return d.scanAny(d.rels[attr(el, "dm")].target, func(s *scanner) error {
				return s.children(d.shape(s, &shape{}))
			})
		case "Fallback":
		default:
			return s.children(read)
		}
		return nil
	}
	return read
}

// paragraph reads a paragraph of a shape.
func (d *slides) paragraph(s *scanner, in *shape) error {
	text, depth, mark, err := drawingText(s)
	if err != nil || tidy(text) == "" {
		return err
	}
	tight := in.listed
	in.listed = false
	switch in.kind {
	case "title", "ctrTitle":
		return d.out.heading(1, text)
	case "sldNum", "dt", "ftr", "hdr", "sldImg":
		return nil
	}
	switch {
	case in.notes:
		return d.out.paragraph("Notes: "+text, false)
	case mark == marked, mark == inherited && in.holds && (in.kind == "" || in.kind == "body" || in.kind == "obj"):
		in.listed = true
		return d.out.item(depth, bullet, text, tight)
	}
	return d.out.paragraph(text, false)
}

// Whether a paragraph has a bullet.
const (
	inherited = iota
	marked
	unmarked
)

// drawingText returns the text of a DrawingML paragraph, its depth and bullet.
func drawingText(s *scanner) (text string, depth, mark int, err error) {
	var b strings.Builder
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "t":
			text, err := s.text()
			b.WriteString(text)
			return err
		case "br":
			b.WriteByte('\n')
		case "pPr":
			depth, _ = strconv.Atoi(attr(el, "lvl"))
			return s.children(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "buChar", "buAutoNum", "buBlip":
					mark = marked
				case "buNone":
					mark = unmarked
				}
				return nil
			})
		case "rPr", "endParaRPr":
		default:
			return s.children(read)
		}
		return nil
	}
	err = s.children(read)
	return b.String(), depth, mark, err
}

func (d *slides) table(s *scanner) error {
	t := table{out: d.out}
	return s.children(func(el xml.StartElement) error {
		if el.Name.Local != "tr" {
			return nil
		}
		var cells []string
		err := s.children(func(el xml.StartElement) error {
			if el.Name.Local != "tc" {
				return nil
			}
			var lines []string
			var read func(el xml.StartElement) error
			read = func(el xml.StartElement) error {
				if el.Name.Local != "p" {
					return s.children(read)
				}
				text, _, _, err := drawingText(s)
				lines = append(lines, text)
				return err
			}
			err := s.children(read)
			cells = append(cells, cellText(strings.Join(lines, "\n")))
			return err
		})
		if err != nil {
			return err
		}
		return t.row(cells)
	})
}

// chart writes the values saved with a chart.
func (d *slides) chart(name string) error {
	return d.scanAny(name, func(s *scanner) error {
		var series []string
		var read func(el xml.StartElement) error
		read = func(el xml.StartElement) error {
			if el.Name.Local != "ser" {
				return s.children(read)
			}
			text, err := readSeries(s)
			series = append(series, text)
			return err
		}
		if err := s.children(read); err != nil || len(series) == 0 {
			return err
		}
		return d.out.paragraph("[chart: "+strings.Join(series, "; ")+"]", false)
	})
}

// readSeries reads the points of a chart's series.
func readSeries(s *scanner) (string, error) {
	found := map[string][]string{}
	err := s.children(func(el xml.StartElement) error {
		part := el.Name.Local
		var read func(el xml.StartElement) error
		read = func(el xml.StartElement) error {
			if el.Name.Local != "v" {
				return s.children(read)
			}
			text, err := s.text()
			found[part] = append(found[part], line(text))
			return err
		}
		switch part {
		case "tx", "cat", "val", "xVal", "yVal":
			return s.children(read)
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
func (d *slides) readNotes(name string) error {
	return d.scanAny(name, func(s *scanner) error {
		return s.children(d.shape(s, &shape{notes: true}))
	})
}
