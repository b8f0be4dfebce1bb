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
	rels    map[string]relation // of the current slide
	authors map[string]string   // of comments, by id
}

func (p *zipDocument) readSlides(main string, s *scanner) error {
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
	authors := map[string]string{}
	for _, r := range all {
		if r.kind != "commentAuthors" && r.kind != "authors" {
			continue
		}
		err := p.scanOptional(r.target, func(s *scanner) error {
			return s.eachChild(func(xml.StartElement) error {
				return s.eachChild(func(el xml.StartElement) error {
					authors[attr(el, "id")] = oneLine(attr(el, "name"))
					return nil
				})
			})
		})
		if err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := (&pptxReader{zipDocument: p, authors: authors}).readSlide(all[id].target); err != nil {
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
			wanted = d.out.beginPart("", attr(root, "show") == "0" || attr(root, "show") == "false")
			if !wanted {
				return nil
			}
			return s.eachChild(d.shapeReader(s, &shape{}))
		})
	})
	if err := d.tolerate(name, err); err != nil {
		return err
	}
	if !wanted {
		return nil
	}
	if notes := relatedFile(d.rels, "notesSlide"); notes != "" {
		if err := d.readNotes(notes); err != nil {
			return err
		}
	}
	return d.readComments()
}

// shape is the state of a shape while it is read.
type shape struct {
	isPlaceholder bool   // it is a placeholder
	kind          string // of the placeholder
	onNotesPage   bool   // it is on the notes page
	afterItem     bool   // the last paragraph was an item
	described     bool   // its alternative text was written
	hidden        bool
	link          string
	marks         drawingMarks
}

// shapeReader returns a function that reads the shapes of a slide in drawing order.
func (d *pptxReader) shapeReader(s *scanner, in *shape) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "sp", "pic", "cxnSp":
			return s.eachChild(d.shapeReader(s, &shape{onNotesPage: in.onNotesPage, hidden: in.hidden}))
		case "grpSp":
			return s.eachChild(d.shapeReader(s, &shape{onNotesPage: in.onNotesPage, hidden: in.hidden, described: true}))
		case "ph":
			in.isPlaceholder, in.kind = true, attr(el, "type")
		case "cNvPr":
			return d.readProperties(s, el, in)
		case "blip":
			if !in.described && !in.onNotesPage {
				in.described = true
				return d.out.addParagraph("[picture]"+linkSuffix(in.link), false)
			}
		case "lstStyle":
			return in.marks.readStyles(s)
		case "p":
			return d.readParagraph(s, in)
		case "tbl":
			return d.readTable(s)
		case "chart":
			text, err := d.readChart(d.rels[relationID(el)].target)
			if err != nil {
				return err
			}
			return d.out.addParagraph(text, false)
		case "oleObj":
			return d.out.addParagraph(embeddedObject(attr(el, "progId")), false)
		case "relIds": // of a diagram
			return d.scanOptional(d.rels[attr(el, "dm")].target, func(s *scanner) error {
				return s.eachChild(d.shapeReader(s, &shape{described: true}))
			})
		case "Fallback":
		default:
			return s.eachChild(read)
		}
		return nil
	}
	return read
}

// readProperties reads the alternative text of a shape, and the target of its link.
func (d *pptxReader) readProperties(s *scanner, el xml.StartElement, in *shape) error {
	err := s.eachChild(func(el xml.StartElement) error {
		if el.Name.Local == "hlinkClick" {
			in.link = d.linkTarget(el)
		}
		return nil
	})
	in.hidden = in.hidden || attr(el, "hidden") == "1" || attr(el, "hidden") == "true"
	said := oneLine(attr(el, "descr"))
	if err != nil || said == "" || in.onNotesPage {
		return err
	}
	in.described = true
	return d.out.addParagraph(fmt.Sprintf("[picture: %s]", said)+linkSuffix(in.link), false)
}

// linkTarget returns the address of a link that leaves the document.
func (d *pptxReader) linkTarget(el xml.StartElement) string {
	if to := d.rels[relationID(el)]; to.external {
		return to.target
	}
	return ""
}

// linkSuffix returns the target of a link, as it follows the text of the link.
func linkSuffix(to string) string {
	if to = oneLine(to); to == "" {
		return ""
	}
	return " (" + to + ")"
}

// readParagraph reads a paragraph of a shape.
func (d *pptxReader) readParagraph(s *scanner, in *shape) error {
	text, about, err := readDrawingText(s, d.linkTarget)
	if err != nil {
		return err
	}
	if in.hidden && tidy(text) != "" {
		text = "[hidden: " + tidy(text) + "]"
	}
	inherits := in.isPlaceholder && !in.onNotesPage && (in.kind == "" || in.kind == "body" || in.kind == "obj")
	mark := in.marks.next(about, inherits, tidy(text) == "")
	if tidy(text) == "" {
		return nil
	}
	tight := in.afterItem
	in.afterItem = false
	if to := linkSuffix(in.link); !strings.HasSuffix(text, to) { // its text may have the same link
		text += to
	}
	switch in.kind {
	case "title", "ctrTitle":
		return d.out.addHeading(1, text)
	case "sldNum", "dt", "ftr", "hdr", "sldImg":
		return nil
	}
	switch {
	case in.onNotesPage:
		return d.out.addParagraph("Notes: "+behindMark(mark, text), false)
	case mark != "":
		in.afterItem = true
		return d.out.addItem(about.depth, mark, text, tight)
	}
	return d.out.addParagraph(text, false)
}

// drawingParagraph is what the properties of a DrawingML paragraph say of its bullet or number.
type drawingParagraph struct {
	depth  int
	bullet bulletKind
	glyph  string // of a bullet
	number string // the format of an automatic number
	start  int
}

// bulletKind is whether a paragraph has a bullet or a number.
type bulletKind int

const (
	bulletInherited bulletKind = iota
	bulletSet
	bulletNumber
	bulletNone
)

// drawingMarks counts the numbered paragraphs of a shape.
type drawingMarks struct {
	styles [maxListLevels]drawingParagraph // what the shape says of the levels
	last   [maxListLevels]drawingParagraph // the last paragraph of the level
	counts [maxListLevels]int              // 0 before the first one
}

// readStyles reads what a shape says of its levels.
func (m *drawingMarks) readStyles(s *scanner) error {
	return s.eachChild(func(el xml.StartElement) error {
		level, ok := strings.CutPrefix(el.Name.Local, "lvl")
		n, err := strconv.Atoi(strings.TrimSuffix(level, "pPr"))
		if !ok || err != nil || n < 1 || n > maxListLevels {
			return nil
		}
		return readBullet(s, &m.styles[n-1])
	})
}

// next returns the number or bullet of a paragraph, "" for none. An empty one has none and is not counted.
func (m *drawingMarks) next(p drawingParagraph, inherits, empty bool) string {
	p.depth = min(max(p.depth, 0), maxListLevels-1)
	if p.bullet == bulletInherited {
		style := m.styles[p.depth]
		p.bullet, p.glyph, p.number, p.start = style.bullet, style.glyph, style.number, style.start
	}
	if empty {
		return ""
	}
	for deeper := p.depth + 1; deeper < maxListLevels; deeper++ {
		m.counts[deeper] = 0
	}
	if p.bullet != bulletNumber {
		m.counts[p.depth] = 0
		if p.bullet == bulletSet || p.bullet == bulletInherited && inherits {
			return bulletMark(p.glyph)
		}
		return ""
	}
	if last := m.last[p.depth]; last.number != p.number || last.start != p.start || m.counts[p.depth] == 0 {
		m.counts[p.depth] = p.start - 1
	}
	m.last[p.depth] = p
	m.counts[p.depth]++
	return drawingNumber(p.number, m.counts[p.depth])
}

// drawingNumber formats a number in one of PowerPoint's formats, such as alphaLcParenR.
func drawingNumber(format string, n int) string {
	text := strconv.Itoa(n)
	for prefix, is := range map[string]string{"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman", "circleNum": "decimalEnclosedCircle", "ea1": "chineseCounting"} {
		if strings.HasPrefix(format, prefix) {
			text = formatOrdinal(is, n)
		}
	}
	switch {
	case strings.HasSuffix(format, "ParenBoth"):
		return "(" + text + ")"
	case strings.HasSuffix(format, "ParenR"):
		return text + ")"
	case strings.HasSuffix(format, "Period"):
		return text + "."
	case strings.HasSuffix(format, "Minus"):
		return text + "-"
	}
	return text
}

// readBullet reads the properties of a paragraph.
func readBullet(s *scanner, into *drawingParagraph) error {
	font := ""
	return s.eachChild(func(el xml.StartElement) error {
		switch el.Name.Local {
		case "buFont":
			font = attr(el, "typeface")
		case "buChar", "buBlip":
			into.bullet, into.glyph = bulletSet, symbolText(font, attr(el, "char"))
		case "buAutoNum":
			into.bullet, into.number, into.start = bulletNumber, attr(el, "type"), 1
			if n, err := strconv.Atoi(attr(el, "startAt")); err == nil {
				into.start = n
			}
		case "buNone":
			into.bullet = bulletNone
		}
		return nil
	})
}

// readDrawingText returns the text of a DrawingML paragraph, and what its properties say. target returns the
// address of a link; nil leaves links out.
func readDrawingText(s *scanner, target func(xml.StartElement) string) (text string, about drawingParagraph, err error) {
	var b richText
	var style textStyle
	font := ""
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "t":
			text, err := s.readText()
			b.write(symbolText(font, unescapeCharacters(text)), style)
			return err
		case "br":
			b.write("\n", style)
		case "pPr":
			about.depth, _ = strconv.Atoi(attr(el, "lvl"))
			return readBullet(s, &about)
		case "r", "fld":
			style, font = textStyle{}, ""
			err := s.eachChild(read)
			style, font = textStyle{}, ""
			return err
		case "rPr":
			raised, _ := strconv.Atoi(strings.TrimSuffix(attr(el, "baseline"), "%"))
			style.script = max(-1, min(raised, 1))
			strike := attr(el, "strike")
			style.struck = strike == "sngStrike" || strike == "dblStrike"
			return s.eachChild(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "hlinkClick":
					if target != nil {
						style.link = target(el)
					}
				case "latin", "sym":
					if font == "" {
						font = attr(el, "typeface")
					}
				}
				return nil
			})
		case "oMath":
			text, err := readFormula(s, el)
			b.plain(text)
			return err
		case "endParaRPr", "Fallback":
		default:
			return s.eachChild(read)
		}
		return nil
	}
	err = s.eachChild(read)
	return b.String(), about, err
}

// readDrawingLines returns the paragraphs in the current element, with their numbers and bullets.
func readDrawingLines(s *scanner, target func(xml.StartElement) string) (lines []string, err error) {
	var marks drawingMarks
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "lstStyle":
			return marks.readStyles(s)
		case "p":
			text, about, err := readDrawingText(s, target)
			lines = append(lines, behindMark(marks.next(about, false, tidy(text) == ""), text))
			return err
		case "Fallback":
			return nil
		}
		return s.eachChild(read)
	}
	err = s.eachChild(read)
	return lines, err
}

func (d *pptxReader) readTable(s *scanner) error {
	t := table{out: d.out}
	err := s.eachChild(func(el xml.StartElement) error {
		if el.Name.Local != "tr" {
			return nil
		}
		var cells []string
		err := s.eachChild(func(el xml.StartElement) error {
			if el.Name.Local != "tc" {
				return nil
			}
			lines, err := readDrawingLines(s, d.linkTarget)
			cells = append(cells, cellText(strings.Join(lines, "\n")))
			return err
		})
		if err != nil {
			return err
		}
		return t.addRow(cells)
	})
	if err != nil {
		return err
	}
	return t.end()
}

// readNotes reads the speaker notes.
func (d *pptxReader) readNotes(name string) error {
	return d.scanOptional(name, func(s *scanner) error {
		return s.eachChild(d.shapeReader(s, &shape{onNotesPage: true}))
	})
}

// readComments reads the comments on a slide, of both kinds that PowerPoint writes.
func (d *pptxReader) readComments() error {
	return d.scanOptional(relatedFile(d.rels, "comments"), func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			var read func(el xml.StartElement) error
			read = func(el xml.StartElement) error {
				if el.Name.Local != "cm" {
					return s.eachChild(read)
				}
				text := ""
				var replies []string
				var inner func(el xml.StartElement) error
				author := d.authors[attr(el, "authorId")]
				inner = func(el xml.StartElement) (err error) {
					switch el.Name.Local {
					case "text":
						text, err = s.readText()
						text = unescapeCharacters(text)
					case "txBody":
						lines, wrong := readDrawingLines(s, nil)
						text, err = strings.Join(lines, " "), wrong
					case "reply":
						kept, keptAuthor := text, author
						text, author = "", d.authors[attr(el, "authorId")]
						err = s.eachChild(inner)
						replies = append(replies, commentText(author, text))
						text, author = kept, keptAuthor
					default:
						return s.eachChild(inner)
					}
					return err
				}
				if err := s.eachChild(inner); err != nil {
					return err
				}
				for _, said := range append([]string{commentText(author, text)}, replies...) {
					if err := d.out.addParagraph(said, false); err != nil {
						return err
					}
				}
				return nil
			}
			return s.eachChild(read)
		})
	})
}

// commentText returns a comment with its author, if it has one.
func commentText(author, text string) string {
	if author = oneLine(author); author != "" {
		author = " of " + author
	}
	return "comment" + author + ": " + oneLine(text)
}
