package office

import (
	"cmp"
	"encoding/xml"
	"strconv"
	"strings"

	"oneclaw/internal/wording"
)

// odfStyle is a style of OpenDocument, of which only what changes the meaning is read.
type odfStyle struct {
	parent     string
	run        runFormat
	breaksPage bool
	hidden     bool // a sheet, a slide or a section
	list       string
	hasOwnList bool
}

// odfStyles are the styles of a document, by family and name.
type odfStyles struct {
	named   map[string]odfStyle
	lists   map[string]*odfList
	outline *odfList // numbers of headings
}

// odfList is a list style: how its levels are numbered.
type odfList struct {
	levels [maxOutlineLevels]odfLevel
}

// maxOutlineLevels bounds the levels of lists and headings in OpenDocument.
const maxOutlineLevels = 10

// odfLevel is how a level is numbered.
type odfLevel struct {
	bullet                 string // "" if it is numbered
	format, prefix, suffix string
	pattern                string // such as %1%.%2%, which replaces prefix and suffix
	start, shown           int    // the first number, and of how many levels numbers are shown
	repeats                bool   // AA and BB follow Z, not AA and AB
}

// find returns a style with what it inherits.
func (t *odfStyles) find(family, name string) odfStyle {
	style := t.named[family+"/"+name]
	for range maxStyles {
		parent, ok := t.named[family+"/"+style.parent]
		if style.parent == "" || !ok {
			break
		}
		style.run = style.run.over(parent.run)
		style.breaksPage = style.breaksPage || parent.breaksPage
		if !style.hasOwnList {
			style.list, style.hasOwnList = parent.list, parent.hasOwnList
		}
		style.parent = parent.parent
	}
	return style
}

// read reads the styles in the current element. Later ones replace earlier ones.
func (t *odfStyles) read(s *scanner) error {
	return s.eachChild(func(el xml.StartElement) error {
		switch el.Name.Local {
		case "list-style", "outline-style":
			l := &odfList{}
			if el.Name.Local == "outline-style" {
				t.outline = l
			} else {
				t.lists[attr(el, "name")] = l
			}
			return l.read(s)
		case "style":
			style := odfStyle{parent: attr(el, "parent-style-name")}
			for _, a := range el.Attr {
				switch a.Name.Local {
				case "list-style-name":
					style.list, style.hasOwnList = a.Value, true
				case "master-page-name":
					style.breaksPage = a.Value != ""
				}
			}
			err := s.eachChild(func(properties xml.StartElement) error {
				style.readProperties(properties)
				return nil
			})
			t.named[attr(el, "family")+"/"+attr(el, "name")] = style
			return err
		}
		return nil
	})
}

// readProperties reads an element with properties.
func (style *odfStyle) readProperties(el xml.StartElement) {
	for _, a := range el.Attr {
		off := -1
		switch a.Name.Local {
		case "text-position":
			style.run.script = odfScript(a.Value)
		case "text-line-through-style", "text-line-through-type":
			if a.Value != "none" {
				off = 1
			}
			style.run.struck = cmp.Or(max(style.run.struck, 0), off)
		case "display":
			if a.Value == "none" || a.Value == "false" {
				off = 1
			}
			style.run.hidden = off
			style.hidden = off == 1
		case "visibility":
			style.hidden = a.Value == "hidden"
		case "font-name":
			style.run.font = a.Value
		case "break-before":
			style.breaksPage = a.Value == "page"
		}
	}
}

// odfScript returns whether a position, as "super 58%" or "-33% 58%", is above the line, below or on it.
func odfScript(position string) int {
	raised, _, _ := strings.Cut(strings.TrimSpace(position), " ")
	percent, _ := strconv.ParseFloat(strings.TrimSuffix(raised, "%"), 64)
	switch {
	case raised == "super", percent > 0:
		return 1
	case raised == "sub", percent < 0:
		return -1
	}
	return 2
}

func (l *odfList) read(s *scanner) error {
	for i := range l.levels {
		l.levels[i] = odfLevel{bullet: bullet, start: 1, shown: 1}
	}
	return s.eachChild(func(el xml.StartElement) error {
		at, err := strconv.Atoi(attr(el, "level"))
		if err != nil || at < 1 || at > maxOutlineLevels {
			return nil
		}
		level := odfLevel{start: 1, shown: 1, format: attr(el, "num-format")}
		level.prefix, level.suffix = wording.Clip(attr(el, "num-prefix"), maxMark), wording.Clip(attr(el, "num-suffix"), maxMark)
		level.pattern = wording.Clip(attr(el, "num-list-format"), maxMark)
		if el.Name.Local != "list-level-style-number" && el.Name.Local != "outline-level-style" {
			level.bullet = bulletMark(attr(el, "bullet-char"))
		}
		if n, err := strconv.Atoi(attr(el, "start-value")); err == nil {
			level.start = n
		}
		if n, err := strconv.Atoi(attr(el, "display-levels")); err == nil {
			level.shown = n
		}
		level.repeats = attr(el, "num-letter-sync") == "true"
		l.levels[at-1] = level
		return nil
	})
}

// odfCounter counts the items of a list and of the lists in it.
type odfCounter struct {
	styles [maxOutlineLevels]*odfList
	counts [maxOutlineLevels]int
	begun  [maxOutlineLevels]bool
	// A presentation has no lists that go on: items that look alike count on with each other in a shape.
	inShape bool
	last    [maxOutlineLevels]odfLevel
}

// enter begins a list of a level, from 0. In a text, a list in a list has numbers of its own unless it goes
// on with those of the one before it.
func (c *odfCounter) enter(at int, style *odfList, goesOn bool) {
	c.styles[at] = style
	if at > 0 && !goesOn && !c.inShape {
		c.begun[at] = false
	}
}

// next counts an item of a level, from 0, and returns its number, a bullet, or "" if neither is shown.
// start replaces its number unless it is empty.
func (c *odfCounter) next(at int, start string) string {
	at = min(at, maxOutlineLevels-1)
	level := c.level(at)
	if c.inShape && level != c.last[at] {
		c.begun[at] = false
	}
	c.last[at] = level
	c.counts[at]++
	if !c.begun[at] {
		c.counts[at], c.begun[at] = level.start, true
	}
	if n, err := strconv.Atoi(start); err == nil {
		c.counts[at] = n
	}
	for deeper := at + 1; deeper < maxOutlineLevels; deeper++ {
		c.begun[deeper] = false
	}
	for above := range at {
		if !c.begun[above] && !c.inShape { // an item without text was skipped
			c.counts[above], c.begun[above] = c.level(above).start, true
		}
	}
	switch {
	case level.bullet != "":
		return level.bullet
	case level.format == "":
		return ""
	case level.pattern != "":
		text := level.pattern
		for i := range at + 1 {
			text = strings.ReplaceAll(text, "%"+strconv.Itoa(i+1)+"%", c.number(i))
		}
		return oneLine(text)
	}
	var numbers []string
	for i := max(0, at-level.shown+1); i <= at; i++ {
		if n := c.number(i); n != "" {
			numbers = append(numbers, n)
		}
	}
	return oneLine(level.prefix + strings.Join(numbers, ".") + level.suffix)
}

// level returns how a level is numbered.
func (c *odfCounter) level(at int) odfLevel {
	for i := at; i >= 0; i-- { // a list in a list has the style of the outer one, unless it has its own
		if c.styles[i] != nil {
			return c.styles[i].levels[at]
		}
	}
	return odfLevel{bullet: bullet}
}

// number returns the number of a level's last item.
func (c *odfCounter) number(at int) string {
	level := c.level(at)
	n := level.start
	if c.begun[at] {
		n = c.counts[at]
	}
	switch {
	case level.format == "", level.bullet != "":
		return ""
	case level.format == "a" && level.repeats:
		return formatOrdinal("lowerLetter", n)
	case level.format == "A" && level.repeats:
		return formatOrdinal("upperLetter", n)
	case level.format == "a" && n > 0:
		return strings.ToLower(wording.ColumnName(n - 1))
	case level.format == "A" && n > 0:
		return wording.ColumnName(n - 1)
	case level.format == "i":
		return formatOrdinal("lowerRoman", n)
	case level.format == "I":
		return formatOrdinal("upperRoman", n)
	case strings.HasPrefix(level.format, "①"):
		return formatOrdinal("decimalEnclosedCircle", n)
	case strings.HasPrefix(level.format, "一"):
		return formatOrdinal("chineseCounting", n)
	case strings.HasPrefix(level.format, "0"):
		return formatOrdinal("decimalZero", n)
	}
	return strconv.Itoa(n)
}
