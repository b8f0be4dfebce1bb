package markdown

import "strings"

// stream is a text being written, with its last characters.
type stream struct {
	buf        []byte
	units      int // visible
	raw        int // all
	prev, last rune
}

// writeRune appends a visible character, escaped if escape is set.
func (s *stream) writeRune(r rune, escape bool) {
	text := string(r)
	s.units += UTF16Len(text)
	s.prev, s.last = s.last, r
	if escape {
		text = escapes.Replace(text)
	}
	s.writeMarkup(text)
}

// escapes are the references for special characters.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// writeMarkup appends text that is not shown.
func (s *stream) writeMarkup(text string) {
	s.buf = append(s.buf, text...)
	s.raw += UTF16Len(text)
}

// lastOutput is the kind of the last output of the formatted stream.
type lastOutput uint8

const (
	endsInText lastOutput = iota
	endsInOpening
	endsInClosing
)

// insertion is text that is added to the plain text if there is room.
type insertion struct {
	at   int
	text string
}

// writer renders atoms into one part. A copy of it is a restore point: its slices are only
// appended to, by one copy at a time.
type writer struct {
	rules      rules
	traits     traits
	limit      int
	text       stream
	plain      stream
	links      []insertion
	span       *span
	spans      int // counted for traits.maxSpans
	spanBytes  int // counted for traits.maxSpanBytes
	lastOutput lastOutput
	begun      bool
}

// write appends an atom; at the start of a part, without
// its gap. It stops once the part is too long to be used.
func (w *writer) write(a atom) {
	if w.begun {
		w.writeGap(a.gap, commonSpan(w.span, a.span))
	}
	w.enterSpan(a.span)
	w.begun = true
	for i := range a.text {
		if w.plain.raw > w.limit {
			break
		}
		p := position{rest: a.text[i:], atomStart: i == 0, inCode: a.span.isCode(), ambiguousMarks: a.ambiguousMarks}
		w.writeRune(p)
	}
	w.lastOutput = endsInText
}

// writeRune appends the character at p to both streams.
func (w *writer) writeRune(p position) {
	r := p.next()
	p.prev, p.last = w.text.prev, w.text.last
	loose := w.traits.wordMarks && w.lastOutput == endsInClosing && !closesBefore(r)
	if loose || w.rules.needsMentionGuard(p) {
		w.text.writeRune(zeroWidthSpace, false)
	}
	w.lastOutput = endsInText
	w.text.writeRune(r, true)
	p.prev, p.last, p.inPlainText = w.plain.prev, w.plain.last, true
	if w.rules.needsMentionGuard(p) {
		w.plain.writeRune(zeroWidthSpace, false)
	}
	w.plain.writeRune(r, w.traits.plainEscaped)
}

// writeGap appends white space inside the span that contains both sides.
func (w *writer) writeGap(g gap, within *span) {
	if g.newlines == 0 {
		if g.space != "" {
			w.closeSpans(within)
			w.writeSpace(g.space)
		}
		return
	}
	if w.traits.inlineEndsAtLine {
		for within != nil && within.style != styleQuote && within.style != stylePre {
			within = within.parent
		}
	}
	w.closeSpans(within)
	quoted := w.traits.quoteMark != 0 && within != nil && within.style == styleQuote
	for i := range g.newlines {
		w.writeSpace("\n")
		if quoted {
			w.text.writeMarkup(string(rune(w.traits.quoteMark)))
		}
		if quoted && i == g.newlines-1 {
			w.text.writeMarkup(" ")
		}
	}
	for range g.indent {
		w.writeSpace(" ")
	}
}

func (w *writer) writeSpace(s string) {
	for _, r := range s {
		w.text.writeRune(r, false)
		w.plain.writeRune(r, false)
	}
	w.lastOutput = endsInText
}

// closeSpans closes spans until target, which contains the current one.
func (w *writer) closeSpans(target *span) {
	for w.span != target {
		_, shut := w.rules.markup(w.span)
		w.text.writeMarkup(shut)
		if w.span.plainSuffix != "" {
			shown := w.span.plainSuffix
			if w.traits.plainEscaped {
				shown = escapes.Replace(shown)
			}
			w.links = append(w.links, insertion{at: len(w.plain.buf), text: shown})
			if w.plain.last != '@' { // otherwise a name would follow the parenthesis
				w.plain.prev, w.plain.last = w.plain.last, ')'
			}
		}
		if w.span.style != styleQuote {
			w.lastOutput = endsInClosing
		}
		w.span = w.span.parent
	}
}

// enterSpan closes and opens spans so that the current one is s.
func (w *writer) enterSpan(s *span) {
	shared := commonSpan(w.span, s)
	w.closeSpans(shared)
	w.openSpans(s, shared)
}

// openSpans opens the spans from below shared down to s.
func (w *writer) openSpans(s, shared *span) {
	if s == shared {
		return
	}
	w.openSpans(s.parent, shared)
	inline := s.style != styleQuote && s.style != stylePre
	if w.traits.wordMarks && inline && w.lastOutput != endsInOpening &&
		(w.lastOutput == endsInClosing || !opensBehind(w.text.last)) {
		w.text.writeRune(zeroWidthSpace, false)
	}
	open, _ := w.rules.markup(s)
	w.text.writeMarkup(open)
	w.countSpan(s)
	if w.span != nil && w.span.style != styleQuote {
		w.countSpan(w.span) // the new one splits it
		w.countSpan(w.span)
	}
	w.span = s
	if inline {
		w.lastOutput = endsInOpening
	}
}

// countSpan counts a span that the platform stores.
func (w *writer) countSpan(s *span) {
	w.spans++
	w.spanBytes += spanOverhead + len(s.href) + len(s.lang)
}

// size returns how much of the limit is used.
func (w *writer) size() int {
	if !w.traits.markupCounts {
		return w.text.units
	}
	return w.rawSize()
}

// rawSize returns the length of the part if it ended here.
func (w *writer) rawSize() int {
	n := w.text.raw
	for s := w.span; s != nil; s = s.parent {
		_, shut := w.rules.markup(s)
		n += UTF16Len(shut)
	}
	return n
}

// fits reports whether the part could end here.
func (w *writer) fits() bool {
	return w.size() <= w.limit && w.plain.raw <= w.limit && w.rawSize() <= 4*w.limit &&
		(w.traits.maxSpans == 0 || w.spans <= w.traits.maxSpans) &&
		(w.traits.maxSpanBytes == 0 || w.spanBytes <= w.traits.maxSpanBytes)
}

// finishPart ends the part; next is the span in which the following part continues.
func (w *writer) finishPart(next *span) Part {
	w.closeSpans(commonSpan(w.span, next))
	for ; w.span != nil; w.span = w.span.parent { // these spans continue; a link adds its address where it ends
		_, shut := w.rules.markup(w.span)
		w.text.writeMarkup(shut)
	}
	return Part{Text: string(w.text.buf), Plain: w.plainText()}
}

// plainText returns the plain text, with addresses if there is room.
func (w *writer) plainText() string {
	total := w.plain.raw
	for _, l := range w.links {
		total += UTF16Len(l.text)
	}
	if total > w.limit {
		return string(w.plain.buf)
	}
	var out []byte
	from := 0
	for _, l := range w.links {
		out = append(out, w.plain.buf[from:l.at]...)
		out = append(out, l.text...)
		from = l.at
	}
	return string(append(out, w.plain.buf[from:]...))
}
