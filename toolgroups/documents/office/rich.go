package office

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// textStyle is how text differs from plain text where that changes what it says: 10 with a raised 6 is
// not 106, and a struck price is no price.
type textStyle struct {
	script         int // 1 above the line, -1 below it
	struck, hidden bool
	link           string
}

// richText collects a text of runs and marks their styles. Adjacent runs of one style become one.
type richText struct {
	done  strings.Builder
	outer textStyle // of open, without its script
	open  strings.Builder
	level int // the script of run
	run   strings.Builder
}

// write adds a run.
func (t *richText) write(text string, style textStyle) {
	if text == "" {
		return
	}
	level := style.script
	if style.script = 0; style != t.outer {
		t.closeScript(text)
		t.closeStyle()
		t.outer = style
	}
	if level != t.level {
		t.closeScript(text)
		t.level = level
	}
	t.run.WriteString(text)
}

// plain adds a text without a style.
func (t *richText) plain(text string) { t.write(text, textStyle{}) }

// Len returns the size of the text so far, in bytes.
func (t *richText) Len() int { return t.done.Len() + t.open.Len() + t.run.Len() }

// String returns the text.
func (t *richText) String() string {
	t.closeScript("")
	t.closeStyle()
	return t.done.String()
}

// reset empties the text.
func (t *richText) reset() { *t = richText{} }

// closeScript ends a run above or below the line, before the text next.
func (t *richText) closeScript(next string) {
	text, level := t.run.String(), t.level
	t.run.Reset()
	t.level = 0
	lead, core, tail := trimmed(text)
	switch {
	case level == 0 || core == "" || level > 0 && isOrdinal(t.open.String(), core):
		t.open.WriteString(text)
		return
	case tail != "":
		next = ""
	}
	first, _ := utf8.DecodeRuneInString(next)
	mark := "^"
	if level < 0 {
		mark = "_"
	}
	last, _ := utf8.DecodeLastRuneInString(core)
	if !isSimple(core) || unicode.IsDigit(first) || unicode.IsLetter(first) && !unicode.IsDigit(last) {
		core = "(" + oneLine(core) + ")"
	}
	t.open.WriteString(lead + mark + core + tail)
}

// closeStyle ends text that is struck, hidden or a link.
func (t *richText) closeStyle() {
	lead, core, tail := trimmed(t.open.String())
	style := t.outer
	t.open.Reset()
	t.outer = textStyle{}
	if core != "" {
		if to := oneLine(style.link); to != "" && core != to && core != strings.TrimPrefix(to, "mailto:") {
			core += " (" + to + ")"
		}
		if style.struck {
			core = "~~" + core + "~~"
		}
		if style.hidden {
			core = "[hidden: " + core + "]"
		}
	}
	t.done.WriteString(lead + core + tail)
}

// trimmed cuts a text into its leading blanks, the rest, and its trailing blanks.
func trimmed(text string) (lead, core, tail string) {
	rest := strings.TrimLeftFunc(text, unicode.IsSpace)
	core = strings.TrimRightFunc(rest, unicode.IsSpace)
	return text[:len(text)-len(rest)], core, rest[len(core):]
}

// isOrdinal reports whether raised letters end an ordinal number, as in 1st.
func isOrdinal(before, raised string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsDigit(last) && len(raised) > 1 && !strings.ContainsFunc(raised, func(r rune) bool { return !unicode.IsLetter(r) })
}

// isSimple reports whether a raised or lowered text needs no parentheses: a number, a word or a sign.
func isSimple(text string) bool {
	unsigned := strings.TrimLeft(text, "+-−")
	only := func(is func(rune) bool) bool {
		return unsigned != "" && !strings.ContainsFunc(unsigned, func(r rune) bool { return !is(r) })
	}
	return utf8.RuneCountInString(text) == 1 || only(unicode.IsDigit) || only(unicode.IsLetter)
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// The glyphs of the font Symbol from character 33 and 161 on, with blanks for those without a
// counterpart in Unicode.
const (
	symbolLow  = "!∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
	symbolHigh = "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"
)

// pictorial are the characters of fonts of pictures that people use as check boxes, marks and arrows.
var pictorial = map[string]map[rune]rune{
	"wingdings": {
		0x4a: '☺', 0x4c: '☹', 0x6c: '●', 0x6d: '❍', 0x6e: '■', 0x6f: '☐', 0x70: '☐', 0x71: '☐', 0x72: '☐', 0x76: '❖', 0x78: '☒', 0x9f: '•',
		0xa1: '○', 0xa7: '▪', 0xa8: '☐', 0xd8: '➢', 0xdf: '←', 0xe0: '→', 0xe1: '↑', 0xe2: '↓', 0xe7: '⇐', 0xe8: '➔', 0xf0: '⇨', 0xf3: '⇔',
		0xfb: '✗', 0xfc: '✓', 0xfd: '☒', 0xfe: '☑', 0x28: '☎', 0x2a: '✉', 0x46: '☞', 0xab: '★',
		0x81: '①', 0x82: '②', 0x83: '③', 0x84: '④', 0x85: '⑤', 0x86: '⑥', 0x87: '⑦', 0x88: '⑧', 0x89: '⑨', 0x8a: '⑩',
		0x8c: '❶', 0x8d: '❷', 0x8e: '❸', 0x8f: '❹', 0x90: '❺', 0x91: '❻', 0x92: '❼', 0x93: '❽', 0x94: '❾', 0x95: '❿',
	},
	"wingdings 2": {
		0x4f: '✗', 0x50: '✓', 0x51: '☒', 0x52: '☑', 0x53: '☒', 0x54: '☒', 0x97: '●', 0x98: '•', 0x99: '○', 0xa2: '■', 0xa3: '☐', 0x2a: '☐',
	},
	"wingdings 3": {0x66: '←', 0x67: '→', 0x68: '↑', 0x69: '↓', 0x7d: '▶', 0x75: '▶', 0x74: '◀', 0x70: '▲', 0x71: '▼'},
	"webdings":    {0x61: '✓', 0x63: '☐', 0x67: '■', 0x72: '✗', 0x6e: '●', 0x33: '◀', 0x34: '▶'},
}

// symbolText returns a text in a font whose characters are pictures or signs as characters of Unicode.
// What is not known is marked.
func symbolText(font, text string) string {
	font = strings.ToLower(strings.TrimSpace(font))
	signs := pictorial[font]
	if signs == nil && font != "symbol" {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		code := r
		if r >= 0xf000 && r <= 0xf0ff { // where programs move the characters of such fonts to
			code -= 0xf000
		}
		sign := signs[code]
		switch low, high := int(code)-33, int(code)-161; {
		case code > 0xff || unicode.IsSpace(code) || code < ' ':
			sign = code
		case font != "symbol":
		case low >= 0 && low < utf8.RuneCountInString(symbolLow):
			sign = []rune(symbolLow)[low]
		case high >= 0 && high < utf8.RuneCountInString(symbolHigh):
			sign = []rune(symbolHigh)[high]
		}
		if sign == 0 {
			b.WriteString("[symbol]")
			continue
		}
		b.WriteRune(sign)
	}
	return b.String()
}
