package office

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"oneclaw/internal/wording"
)

// bullet is the mark of an item without a number.
const bullet = "-"

// checkMarks are bullets that say whether an item is done.
const checkMarks = "☐☑☒✓✔✗✘"

// bulletMark returns the mark of an item for its bullet.
func bulletMark(glyph string) string {
	if glyph = strings.TrimSpace(glyph); glyph != "" && strings.Contains(checkMarks, glyph) {
		return glyph
	}
	return bullet
}

// headingMark returns the number before a heading, which has no bullet.
func headingMark(mark string) string {
	if mark == bullet {
		return ""
	}
	return mark
}

// maxMark bounds the text around a number, in characters.
const maxMark = 200

// maxListLevels bounds the levels of a list in Word.
const maxListLevels = 9

// numbering counts the items of a Word document's lists.
type numbering struct {
	lists map[string]*list
	kinds map[string]*listKind
}

// listKind is an abstract list. The lists of one kind count on with each other's numbers.
type listKind struct {
	levels         [maxListLevels]listLevel
	counts         [maxListLevels]int
	begun          [maxListLevels]bool // the count is that of the last item
	style, ofStyle string              // the list style that it defines, or that defines it
}

// listLevel is how a level of a list is numbered.
type listLevel struct {
	format, text string
	start        int
	restart      int    // the level whose items, and those of the levels above, begin the numbers anew; -1 for all
	legal        bool   // all numbers of the text are shown as decimal ones
	style        string // the paragraph style of its items
	font         string // of the bullet
}

// list is a list of a kind, with levels and first numbers of its own.
type list struct {
	kind   *listKind
	levels [maxListLevels]*listLevel
	starts [maxListLevels]*int
	used   [maxListLevels]bool // the first number was used
}

// read reads the definitions of lists.
func (n *numbering) read(p *zipDocument, name string) error {
	n.lists, n.kinds = map[string]*list{}, map[string]*listKind{}
	err := p.scanOptional(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "abstractNum":
					k := &listKind{}
					n.kinds[attr(el, "abstractNumId")] = k
					return k.read(s)
				case "num":
					l := &list{}
					n.lists[attr(el, "numId")] = l
					return s.eachChild(func(el xml.StartElement) error {
						switch el.Name.Local {
						case "abstractNumId":
							l.kind = n.kinds[attr(el, "val")]
						case "lvlOverride":
							return l.readOverride(s, attr(el, "ilvl"))
						}
						return nil
					})
				}
				return nil
			})
		})
	})
	byStyle := map[string]*listKind{}
	for _, k := range n.kinds {
		if k.style != "" {
			byStyle[k.style] = k
		}
	}
	for _, l := range n.lists {
		if l.kind != nil && byStyle[l.kind.ofStyle] != nil {
			l.kind = byStyle[l.kind.ofStyle]
		}
	}
	return err
}

func (k *listKind) read(s *scanner) error {
	return s.eachChild(func(el xml.StartElement) error {
		switch el.Name.Local {
		case "styleLink":
			k.style = attr(el, "val")
		case "numStyleLink":
			k.ofStyle = attr(el, "val")
		case "lvl":
			level, err := readLevel(s)
			if at, wrong := strconv.Atoi(attr(el, "ilvl")); wrong == nil && at >= 0 && at < maxListLevels {
				k.levels[at] = level
			}
			return err
		}
		return nil
	})
}

// readLevel reads how a level is numbered.
func readLevel(s *scanner) (listLevel, error) {
	level := listLevel{restart: -1} // a level that says nothing begins with 0
	err := s.eachChild(func(el xml.StartElement) error {
		switch value := attr(el, "val"); el.Name.Local {
		case "numFmt":
			level.format = value
		case "lvlText":
			level.text = wording.Clip(value, maxMark)
		case "isLgl":
			level.legal = !isOff(el)
		case "pStyle":
			level.style = value
		case "rPr":
			f, _, err := readRunFormat(s)
			level.font = f.font
			return err
		case "start":
			if n, err := strconv.Atoi(value); err == nil {
				level.start = n
			}
		case "lvlRestart":
			if n, err := strconv.Atoi(value); err == nil {
				level.restart = n
			}
		}
		return nil
	})
	return level, err
}

// readOverride reads what a level of a list has of its own.
func (l *list) readOverride(s *scanner, level string) error {
	at, wrong := strconv.Atoi(level)
	if wrong != nil || at < 0 || at >= maxListLevels {
		return nil
	}
	return s.eachChild(func(el xml.StartElement) error {
		switch el.Name.Local {
		case "startOverride":
			if start, err := strconv.Atoi(attr(el, "val")); err == nil {
				l.starts[at] = &start
			}
		case "lvl":
			own, err := readLevel(s)
			l.levels[at] = &own
			return err
		}
		return nil
	})
}

// level returns how a level of a list is numbered.
func (l *list) level(at int) listLevel {
	level := l.kind.levels[at]
	if l.levels[at] != nil {
		level = *l.levels[at]
	}
	if l.starts[at] != nil {
		level.start = *l.starts[at]
	}
	return level
}

// levelOf returns the level whose items have a paragraph style, or 0.
func (n *numbering) levelOf(id, style string) int {
	if l := n.lists[id]; l != nil && l.kind != nil {
		for at := range maxListLevels {
			if style != "" && l.level(at).style == style {
				return at
			}
		}
	}
	return 0
}

// nextMark counts an item of a list and returns its formatted number, a bullet, or "" if neither is shown.
func (n *numbering) nextMark(id string, depth int) string {
	l := n.lists[id]
	if l == nil || l.kind == nil || depth < 0 || depth >= maxListLevels {
		return bullet
	}
	k, at := l.kind, l.level(depth)
	switch {
	case l.starts[depth] != nil && !l.used[depth], !k.begun[depth]:
		k.counts[depth] = at.start
	default:
		k.counts[depth]++
	}
	k.begun[depth], l.used[depth] = true, true
	for deeper := depth + 1; deeper < maxListLevels; deeper++ {
		if r := l.level(deeper).restart; r < 0 || depth < r {
			k.begun[deeper] = false
		}
	}
	if at.format == "bullet" || at.format == "" && !strings.Contains(at.text, "%") {
		return bulletMark(symbolText(at.font, at.text))
	}
	text := at.text
	for i := range depth + 1 {
		level := l.level(i)
		number := level.start
		if k.begun[i] {
			number = k.counts[i]
		}
		format := level.format
		if at.legal {
			format = "decimal"
		}
		text = strings.ReplaceAll(text, "%"+strconv.Itoa(i+1), formatOrdinal(format, number))
	}
	return oneLine(text)
}

// formatOrdinal formats a number in one of Word's formats; one that is not known is shown as decimal.
func formatOrdinal(format string, n int) string {
	switch {
	case format == "none":
		return ""
	case format == "decimalZero" && n >= 0 && n < 10:
		return "0" + strconv.Itoa(n)
	case n < 1 || n > 3_999:
	case format == "lowerLetter":
		return strings.ToLower(wording.RepeatedLetter(n))
	case format == "upperLetter":
		return wording.RepeatedLetter(n)
	case format == "lowerRoman":
		return strings.ToLower(wording.Roman(n))
	case format == "upperRoman":
		return wording.Roman(n)
	case format == "ordinal":
		return ordinalNumber(n)
	case format == "decimalEnclosedCircle" && n <= 20:
		return string(rune('①' + n - 1))
	case strings.HasPrefix(format, "chineseCounting"), format == "japaneseCounting", strings.HasPrefix(format, "taiwaneseCounting"):
		return ideographNumber(n)
	}
	return strconv.Itoa(n)
}

// ideographNumber formats a number below 100 as one counts in Chinese and Japanese.
func ideographNumber(n int) string {
	if n >= 100 {
		return strconv.Itoa(n)
	}
	digits := []string{"", "一", "二", "三", "四", "五", "六", "七", "八", "九"}
	tens := ""
	if n >= 10 {
		tens = "十"
	}
	if n >= 20 {
		tens = digits[n/10] + tens
	}
	return tens + digits[n%10]
}

// ordinalNumber formats a number as 1st, 2nd and so on.
func ordinalNumber(n int) string {
	end := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, end)
}
