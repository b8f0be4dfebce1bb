package markdown

import "strings"

// stream is a text being written, with its last characters.
type stream struct {
	buf        []byte
	units      int // visible
	raw        int // all
	prev, last rune
}

// put appends a visible character, escaped if escape is set.
func (s *stream) put(r rune, escape bool) {
	text := string(r)
	s.units += Units(text)
	s.prev, s.last = s.last, r
	if escape {
		text = escapes.Replace(text)
	}
	s.markup(text)
}

// escapes are the references for special characters.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// markup appends invisible text.
func (s *stream) markup(text string) {
	s.buf = append(s.buf, text...)
	s.raw += Units(text)
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
	rules  rules
	traits traits
	limit  int
	text   stream
	plain  stream
	links  []insertion
	span   *span
	spans  int // counted for traits.maxSpans
	ends   lastOutput
	begun  bool
}

// write appends an atom, without its gap at the start of a part. It stops once the part is too
// long to be used.
func (w *writer) write(a atom) {
	if w.begun {
		w.gap(a.gap, common(w.span, a.span))
	}
	w.enter(a.span)
	w.begun = true
	for i := range a.text {
		if w.plain.raw > w.limit {
			break
		}
		p := place{rest: a.text[i:], first: i == 0, code: a.span.code(), marks: a.marks}
		w.rune(p)
	}
	w.ends = endsInText
}

// rune appends the character at p to both streams.
func (w *writer) rune(p place) {
	r := p.next()
	p.prev, p.last = w.text.prev, w.text.last
	loose := w.traits.wordMarks && w.ends == endsInClosing && !border(r)
	if loose || w.rules.needsMentionGuard(p) {
		w.text.put(invisible, false)
	}
	w.ends = endsInText
	w.text.put(r, true)
	p.prev, p.last, p.plain = w.plain.prev, w.plain.last, true
	if w.rules.needsMentionGuard(p) {
		w.plain.put(invisible, false)
	}
	w.plain.put(r, w.traits.plainEscaped)
}

// gap appends white space inside the span that both sides share.
func (w *writer) gap(g gap, within *span) {
	if g.newlines == 0 {
		if g.space != "" {
			w.leave(within)
			w.space(g.space)
		}
		return
	}
	if w.traits.lineBound {
		for within != nil && within.style != styleQuote && within.style != stylePre {
			within = within.parent
		}
	}
	w.leave(within)
	quoted := w.traits.quoteMark != 0 && within != nil && within.style == styleQuote
	for i := range g.newlines {
		w.space("\n")
		if quoted {
			w.text.markup(string(rune(w.traits.quoteMark)))
		}
		if quoted && i == g.newlines-1 {
			w.text.markup(" ")
		}
	}
	for range g.indent {
		w.space(" ")
	}
}

func (w *writer) space(s string) {
	for _, r := range s {
		w.text.put(r, false)
		w.plain.put(r, false)
	}
	w.ends = endsInText
}

// leave closes spans until target, which contains the current one.
func (w *writer) leave(target *span) {
	for w.span != target {
		_, shut := w.rules.markup(w.span)
		w.text.markup(shut)
		if w.span.shown != "" {
			shown := w.span.shown
			if w.traits.plainEscaped {
				shown = escapes.Replace(shown)
			}
			w.links = append(w.links, insertion{at: len(w.plain.buf), text: shown})
			if w.plain.last != '@' { // otherwise a name would follow the parenthesis
				w.plain.prev, w.plain.last = w.plain.last, ')'
			}
		}
		if w.span.style != styleQuote {
			w.ends = endsInClosing
		}
		w.span = w.span.parent
	}
}

// enter closes and opens spans so that the current one is s.
func (w *writer) enter(s *span) {
	shared := common(w.span, s)
	w.leave(shared)
	w.open(s, shared)
}

// open opens the spans from below shared down to s.
func (w *writer) open(s, shared *span) {
	if s == shared {
		return
	}
	w.open(s.parent, shared)
	inline := s.style != styleQuote && s.style != stylePre
	if w.traits.wordMarks && inline && w.ends != endsInOpening &&
		(w.ends == endsInClosing || !border(w.text.last)) {
		w.text.put(invisible, false)
	}
	open, _ := w.rules.markup(s)
	w.text.markup(open)
	w.spans++
	if w.span != nil && w.span.style != styleQuote {
		w.spans += 2 // it splits the surrounding one
	}
	w.span = s
	if inline {
		w.ends = endsInOpening
	}
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
		n += Units(shut)
	}
	return n
}

// fits reports whether the part could end here.
func (w *writer) fits() bool {
	return w.size() <= w.limit && w.plain.raw <= w.limit && w.rawSize() <= 4*w.limit &&
		(w.traits.maxSpans == 0 || w.spans <= w.traits.maxSpans)
}

// part ends the part; next is the span in which the following part continues.
func (w *writer) part(next *span) Part {
	w.leave(common(w.span, next))
	for ; w.span != nil; w.span = w.span.parent { // these continue: a link adds its address at its end
		_, shut := w.rules.markup(w.span)
		w.text.markup(shut)
	}
	return Part{Text: string(w.text.buf), Plain: w.plainText()}
}

// plainText returns the plain text, with addresses if there is room.
func (w *writer) plainText() string {
	total := w.plain.raw
	for _, l := range w.links {
		total += Units(l.text)
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
