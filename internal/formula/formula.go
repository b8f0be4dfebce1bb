// Package formula writes a formula, which programs show with its parts above each other, on one line:
// (a+b)/2 ≤ √(x^2).
package formula

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unread stands for a formula that cannot be read.
const Unread = "[formula]"

const (
	// MaxElements bounds the elements of a formula. Whoever reads a larger one writes [Unread].
	MaxElements = 10_000
	// maxText bounds the text of a formula, in bytes.
	maxText = 20_000
)

// Element is an element of a formula in MathML or in Office's language (OMML). RTF has the elements of OMML,
// and its texts stand in elements named r or not at all.
type Element struct {
	Name  string
	Attrs map[string]string
	Text  string
	Parts []*Element
}

// relationSign matches a sign between two sides, which stands between spaces.
var relationSign = regexp.MustCompile(`\s*([=≤≥<>≠≈≡≅→⇒⇔↔∈∉⊂⊆∝])\s*`)

// Line returns the formula on one line, or [Unread] if it has no text or is too large.
func (f *Element) Line() string {
	room := maxText
	text := strings.Join(strings.Fields(relationSign.ReplaceAllString(f.write(&room), " $1 ")), " ")
	if text == "" || room < 0 {
		return Unread
	}
	return text
}

// child returns the first child of a name, or an empty element.
func (f *Element) child(name string) *Element {
	for _, p := range f.Parts {
		if p.Name == name {
			return p
		}
	}
	return &Element{}
}

// property returns the value of a property of an element of OMML, or otherwise if it is not set.
func (f *Element) property(name, otherwise string) string {
	p := f.child(f.Name + "Pr").child(name)
	if p.Name == "" {
		return otherwise
	}
	if value, ok := p.Attrs["val"]; ok {
		return value
	}
	if text := strings.TrimSpace(p.Text); text != "" {
		return text // as RTF writes it
	}
	return "on"
}

// write writes an element, and takes its size from room.
func (f *Element) write(room *int) string {
	text := f.writeElement(room)
	if *room -= len(text); *room < 0 {
		return "" // the whole is dropped: nested elements multiply their text
	}
	return text
}

func (f *Element) writeElement(room *int) string { //nolint:cyclop // A table: one case for each element.
	part := func(name string) string { return f.child(name).write(room) }
	at := func(i int) string {
		if i < len(f.Parts) {
			return f.Parts[i].write(room)
		}
		return ""
	}
	switch f.Name {
	case "t", "mi", "mn", "mtext", "ms":
		return f.Text
	case "r", "": // RTF writes the text into these
		return strings.TrimSpace(f.Text) + f.writeAll(room)
	case "mo":
		return strings.TrimSpace(f.Text)
	case "mspace":
		return " "
	case "del", "moveFrom", "annotation", "annotation-xml", "mphantom", "none", "mprescripts":
		return ""
	case "semantics":
		return at(0)
	case "f":
		return fraction(part("num"), part("den"), f.property("type", "") == "noBar")
	case "mfrac":
		return fraction(at(0), at(1), strings.HasPrefix(f.Attrs["linethickness"], "0"))
	case "rad":
		if f.property("degHide", "0") == "0" {
			return root(part("e"), part("deg"))
		}
		return root(part("e"), "")
	case "msqrt":
		return root(f.writeAll(room), "")
	case "mroot":
		return root(at(0), at(1))
	case "sSup":
		return part("e") + scripted(part("sup"), "^")
	case "sSub":
		return part("e") + scripted(part("sub"), "_")
	case "sSubSup":
		return part("e") + scripted(part("sub"), "_") + scripted(part("sup"), "^")
	case "sPre":
		return scripted(part("sub"), "_") + scripted(part("sup"), "^") + part("e")
	case "msup":
		return at(0) + scripted(at(1), "^")
	case "msub", "munder":
		return spaced(at(0), scripted(at(1), "_"))
	case "msubsup", "munderover":
		return spaced(at(0), scripted(at(1), "_")+scripted(at(2), "^"))
	case "mover":
		return accent(at(0), at(1))
	case "mmultiscripts":
		return f.multiscripts(room)
	case "acc":
		return accent(part("e"), f.property("chr", "\u0302"))
	case "bar":
		if f.property("pos", "") == "top" {
			return accent(part("e"), "\u0304")
		}
		return "underline(" + part("e") + ")"
	case "groupChr":
		if f.property("pos", "") == "top" {
			return part("e") + scripted(f.property("chr", "⏟"), "^")
		}
		return part("e") + scripted(f.property("chr", "⏟"), "_")
	case "limLow":
		return part("e") + scripted(part("lim"), "_")
	case "limUpp":
		return accent(part("e"), part("lim"))
	case "nary":
		return f.property("chr", "∫") + scripted(part("sub"), "_") + scripted(part("sup"), "^") + " " + part("e")
	case "func":
		return part("fName") + " " + part("e")
	case "d":
		return f.property("begChr", "(") + f.writeEach(room, "e", f.property("sepChr", "|")) + f.property("endChr", ")")
	case "mfenced":
		return f.fenced(room)
	case "eqArr":
		return strings.ReplaceAll(f.writeEach(room, "e", "; "), "&", "")
	case "m":
		return "[" + f.writeEach(room, "mr", "; ") + "]"
	case "mr":
		return f.writeEach(room, "e", ", ")
	case "mtable":
		return "[" + f.writeEach(room, "", "; ") + "]"
	case "mtr":
		return f.writeEach(room, "mtd", ", ")
	case "phant":
		if f.property("show", "") == "0" {
			return ""
		}
	case "menclose":
		if f.Attrs["notation"] == "radical" {
			return root(f.writeAll(room), "")
		}
	}
	if strings.HasSuffix(f.Name, "Pr") {
		return "" // properties
	}
	return f.writeAll(room)
}

// writeAll writes the children one after the other.
func (f *Element) writeAll(room *int) string {
	var b strings.Builder
	for _, p := range f.Parts {
		b.WriteString(p.write(room))
	}
	return b.String()
}

// writeEach joins the children of a name, or all of them.
func (f *Element) writeEach(room *int, name, separator string) string {
	var all []string
	for _, p := range f.Parts {
		if p.Name == name || name == "" && !strings.HasSuffix(p.Name, "Pr") {
			all = append(all, strings.TrimSpace(p.write(room)))
		}
	}
	return strings.Join(all, separator)
}

// fenced writes MathML's element for parentheses.
func (f *Element) fenced(room *int) string {
	begin, end, separator := "(", ")", ","
	if value, ok := f.Attrs["open"]; ok {
		begin = value
	}
	if value, ok := f.Attrs["close"]; ok {
		end = value
	}
	if value, ok := f.Attrs["separators"]; ok {
		separator = ""
		if r, size := utf8.DecodeRuneInString(strings.TrimSpace(value)); size > 0 {
			separator = string(r)
		}
	}
	return begin + f.writeEach(room, "", separator) + end
}

// multiscripts writes MathML's element for scripts on both sides: pairs of a lower and an upper one.
func (f *Element) multiscripts(room *int) string {
	var base, before, after string
	into := &after
	lower := true
	for i, p := range f.Parts {
		switch {
		case i == 0:
			base = p.write(room)
		case p.Name == "mprescripts":
			into, lower = &before, true
		case lower:
			*into, lower = *into+scripted(p.write(room), "_"), false
		default:
			*into, lower = *into+scripted(p.write(room), "^"), true
		}
	}
	return before + base + after
}

// fraction writes a fraction; without a bar it is a binomial coefficient.
func fraction(num, den string, noBar bool) string {
	if noBar {
		return "binom(" + strings.TrimSpace(num) + ", " + strings.TrimSpace(den) + ")"
	}
	return grouped(num) + "/" + grouped(den)
}

// root writes a root, the square root if degree is empty.
func root(of, degree string) string {
	of = strings.TrimSpace(of)
	switch degree = strings.TrimSpace(degree); degree {
	case "", "2":
		return "√(" + of + ")"
	case "3":
		return "∛(" + of + ")"
	}
	return "root(" + degree + ", " + of + ")"
}

// scripted writes what is above or below the line.
func scripted(text, mark string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	if strings.Trim(text, "′″‴'") == "" {
		return text // primes
	}
	return mark + grouped(text)
}

// spaced writes the limits of a large operator, and a space before that to which it applies.
func spaced(operator, limits string) string {
	if strings.ContainsAny(operator, "∑∏∐∫∬∭∮⋃⋂⨁⨂") || operator == "lim" {
		limits += " "
	}
	return operator + limits
}

// accents are the signs over a letter, as characters that combine with the letter before them.
var accents = map[string]string{
	"^": "\u0302", "ˆ": "\u0302", "~": "\u0303", "˜": "\u0303", "¯": "\u0304", "‾": "\u0304", "-": "\u0304", "_": "\u0304", "→": "\u20d7", "⇀": "\u20d7",
	"⃗": "\u20d7", ".": "\u0307", "˙": "\u0307", "¨": "\u0308", "\u0302": "\u0302", "\u0303": "\u0303", "\u0304": "\u0304", "\u0305": "\u0304",
	"\u0307": "\u0307", "\u0308": "\u0308", "\u030c": "\u030c", "\u0306": "\u0306", "ˇ": "\u030c", "˘": "\u0306",
}

// accent writes what has a sign above it.
func accent(base, over string) string {
	base, over = strings.TrimSpace(base), strings.TrimSpace(over)
	sign, ok := accents[over]
	switch {
	case !ok:
		return base + scripted(over, "^")
	case utf8.RuneCountInString(base) == 1:
		return base + sign
	case sign == "\u0304":
		return "overline(" + base + ")"
	}
	return "(" + base + ")" + sign
}

// grouped puts parentheses around what is not one number, one letter or in parentheses already.
func grouped(text string) string {
	text = strings.TrimSpace(text)
	number := text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) && r != '.' && r != ',' })
	letters := 0
	for _, r := range text {
		if !unicode.Is(unicode.M, r) {
			letters++
		}
	}
	if number || letters == 1 || inParentheses(text) {
		return text
	}
	return "(" + text + ")"
}

// inParentheses reports whether one pair of parentheses is around a text.
func inParentheses(text string) bool {
	if !strings.HasPrefix(text, "(") {
		return false
	}
	depth := 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i == len(text)-1
			}
		}
	}
	return false
}
