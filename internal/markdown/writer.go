package markdown

import "strings"

// stream is text being written, with what is needed to look back.
type stream struct {
	buf        []byte
	units      int // of what a reader sees
	raw        int // of everything
	prev, last rune
}

// put appends a character that a reader sees, escaped if asked for.
func (s *stream) put(r rune, escape bool) {
	text := string(r)
	s.units += Units(text)
	s.prev, s.last = s.last, r
	if escape {
		text = escapes.Replace(text)
	}
	s.markup(text)
}

// escapes are the references for characters that must not stand as they are.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// markup appends what a reader does not see.
func (s *stream) markup(text string) {
	s.buf = append(s.buf, text...)
	s.raw += Units(text)
}

// lastOutput says what the formatted stream ends with.
type lastOutput uint8

const (
	endsInText lastOutput = iota
	endsInOpening
	endsInClosing
)

// insertion is text that belongs into the plain text if there is room.
type insertion struct {
	at   int
	text string
}

// writer renders atoms into one part. A copy of it is a point to return to:
// its slices are only appended to, by one copy at a time.
type writer struct {
	rules  rules
	traits traits
	limit  int
	text   stream
	plain  stream
	links  []insertion
	span   *span
	spans  int // that count against traits.maxSpans
	ends   lastOutput
	begun  bool
}

// write appends an atom, at the start of a part without its gap. It ends early once the
// part is too long: it is not used then.
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
	if loose || w.rules.guard(p) {
		w.text.put(invisible, false)
	}
	w.ends = endsInText
	w.text.put(r, true)
	p.prev, p.last, p.plain = w.plain.prev, w.plain.last, true
	if w.rules.guard(p) {
		w.plain.put(invisible, false)
	}
	w.plain.put(r, w.traits.plainEscaped)
}

// gap appends white space inside the span that both its sides share.
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

// leave closes spans until target, which holds the present one.
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
			if w.plain.last != '@' { // a name behind it would stand behind the parenthesis
				w.plain.prev, w.plain.last = w.plain.last, ')'
			}
		}
		if w.span.style != styleQuote {
			w.ends = endsInClosing
		}
		w.span = w.span.parent
	}
}

// enter closes and opens spans so that the present one is s.
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
		w.spans += 2 // it cuts the one around it into pieces
	}
	w.span = s
	if inline {
		w.ends = endsInOpening
	}
}

// size is how much of the limit is used.
func (w *writer) size() int {
	if !w.traits.markupCounts {
		return w.text.units
	}
	return w.rawSize()
}

// rawSize is the length of the part if it ended here.
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

// part ends the part; next is the span in which the following one goes on.
func (w *writer) part(next *span) Part {
	w.leave(common(w.span, next))
	for ; w.span != nil; w.span = w.span.parent { // these go on: a link tells its address at its end
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
