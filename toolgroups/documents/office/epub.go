package office

import (
	"encoding/xml"
	"io"
	"net/url"
	"path"
	"regexp"
	"strings"

	"oneclaw/internal/readable"
)

// readEPUB reads the chapters of a book in their order.
func (p *zipDocument) readEPUB() error {
	if p.has("META-INF/rights.xml") || p.has("META-INF/sinf.xml") {
		return Refusal("is protected against copying. Ask for a copy without protection")
	}
	main := ""
	err := p.scan("META-INF/container.xml", func(s *scanner) error {
		var read func(el xml.StartElement) error
		read = func(el xml.StartElement) error {
			if el.Name.Local == "rootfile" && main == "" {
				main = attr(el, "full-path")
			}
			return s.eachChild(read)
		}
		return s.eachChild(read)
	})
	if err != nil {
		return err
	}
	chapters, err := p.readSpine(main)
	if err != nil {
		return err
	}
	for _, name := range chapters {
		text := ""
		err := p.open(name, func(from io.Reader) (err error) {
			text, err = readable.Convert(from)
			return err
		})
		if err := p.tolerate(name, err); err != nil {
			return err
		}
		if text == "" {
			continue
		}
		title := ""
		if m := headline.FindStringSubmatch(text); m != nil {
			title = m[1]
		}
		if !p.out.beginPart(title, false) {
			continue
		}
		if err := addMarkdown(text, p.out); err != nil {
			return err
		}
	}
	return nil
}

// headline matches a Markdown heading.
var headline = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)

// readSpine returns the files of the chapters in the book's order.
func (p *zipDocument) readSpine(main string) ([]string, error) {
	files := map[string]string{}
	var chapters []string
	err := p.scan(main, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				return s.eachChild(func(el xml.StartElement) error {
					switch el.Name.Local {
					case "item":
						if href, err := url.PathUnescape(attr(el, "href")); err == nil {
							files[attr(el, "id")] = path.Join(path.Dir(main), href)
						}
					case "itemref":
						if name := files[attr(el, "idref")]; name != "" {
							chapters = append(chapters, name)
						}
					}
					return nil
				})
			})
		})
	})
	return chapters, err
}

// addMarkdown passes a Markdown text to the sink in blocks: paragraphs, items and table rows.
func addMarkdown(text string, out *emitter) error {
	var block []string
	tight := false
	flush := func(next bool) error {
		if len(block) == 0 {
			tight = next
			return nil
		}
		whole := strings.TrimRight(strings.Join(block, "\n"), " \n")
		block = block[:0]
		level := len(whole) - len(strings.TrimLeft(whole, "#"))
		if m := headline.FindString(whole); m != whole {
			level = 0
		}
		was := tight
		tight = next
		return out.add(Block{Text: whole, Level: level, Tight: was})
	}
	fenced := false
	for l := range strings.Lines(text) {
		l = strings.TrimRight(tidyLine(l), " \n")
		trimmed := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
			block = append(block, l)
			continue
		case fenced:
			block = append(block, l)
			continue
		case trimmed == "":
			if err := flush(false); err != nil {
				return err
			}
			continue
		case len(block) > 0 && startsBlock(trimmed) && !strings.HasPrefix(trimmed, "|--"):
			if err := flush(true); err != nil {
				return err
			}
		}
		block = append(block, l)
	}
	return flush(false)
}

// blockStart matches the beginning of an item, a table row or a heading.
var blockStart = regexp.MustCompile(`^([-*+] |\d+[.)] |\||#{1,6} )`)

func startsBlock(line string) bool { return blockStart.MatchString(line) }

// tidyLine returns a line without control characters, keeping leading blanks.
func tidyLine(text string) string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	return indent + tidy(text)
}
