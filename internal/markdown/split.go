package markdown

import (
	"sort"

	"github.com/rivo/uniseg"
)

// cut is a place where a part can end: before atom at, as written so far.
type cut struct {
	writer writer
	at     int
}

// splitter packs atoms into parts.
type splitter struct {
	rules rules
	limit int
	atoms []atom
}

// split renders d in parts, as plain paragraphs if its tree cannot be rendered.
func split(d *Document, r rules, limit int) (parts []Part) {
	defer func() {
		if recover() != nil {
			plain := &Document{root: plainTree(d.source)}
			parts = pack(&splitter{rules: r, limit: limit, atoms: plain.lay(r)})
		}
	}()
	return pack(&splitter{rules: r, limit: limit, atoms: d.lay(r)})
}

// pack makes parts of all atoms.
func pack(s *splitter) []Part {
	var parts []Part
	for at := 0; at < len(s.atoms); {
		c := s.next(at)
		at = c.at
		var next *span
		if at < len(s.atoms) {
			next = s.atoms[at].span
		}
		if p := c.writer.part(next); !blank(p.Plain) {
			parts = append(parts, p)
		}
	}
	return parts
}

// begin starts a part with the atom: in a table below its header, with that.
func (s *splitter) begin(a atom) writer {
	w := writer{rules: s.rules, traits: s.rules.traits(), limit: s.limit}
	if pre := a.span.find(stylePre); a.body && pre != nil && len(pre.head) > 0 {
		headed := w
		for _, h := range pre.head {
			headed.write(h)
		}
		if headed.fits() && headed.size() <= s.limit/2 && headed.plain.raw <= s.limit/2 {
			w = headed
			a.gap = gap{newlines: 1}
		}
	}
	w.write(a)
	return w
}

// next finds the end of the part that begins with the atom at start.
func (s *splitter) next(start int) cut {
	var best [cutLevels]cut
	w := s.begin(s.atoms[start])
	if !w.fits() {
		empty := s.atoms[start]
		empty.text = ""
		s.atoms[start].gap = gap{}
		return s.sever(s.begin(empty), start, true)
	}
	for i := start + 1; i < len(s.atoms); i++ {
		if level := s.atoms[i].gap.cut; level != cutNever {
			best[level] = cut{writer: w, at: i}
		}
		before := w
		if w.write(s.atoms[i]); w.fits() {
			continue
		}
		if c, ok := s.choose(best, i); ok {
			return c
		}
		return s.sever(before, i, false)
	}
	return cut{writer: w, at: len(s.atoms)}
}

// choose takes the best kind of cut that leaves a part reasonably full. If
// there is none, an atom that fits into the next part is not severed either.
func (s *splitter) choose(best [cutLevels]cut, overflow int) (cut, bool) {
	for level := cutBlock; level > cutNever; level-- {
		enough := s.limit / 2
		if level == cutBlock {
			enough = s.limit / 3
		}
		if c := best[level]; c.at > 0 && c.writer.size() >= enough {
			return c, true
		}
	}
	var latest cut
	for _, c := range best {
		if c.at > latest.at {
			latest = c
		}
	}
	if latest.at == 0 {
		return latest, false
	}
	alone := s.begin(s.atoms[overflow])
	return latest, alone.fits()
}

// sever cuts the atom at i, which does not fit behind w, between characters as a reader
// sees them. If it must, it takes something of the atom in any case.
func (s *splitter) sever(w writer, i int, must bool) cut {
	a := s.atoms[i]
	n, fitting := longest(w, a, clusters(a.text, s.limit))
	if n == 0 && must {
		// One character of more code points than a part can take, which is
		// no text for readers: at least the code points stay whole.
		if n, fitting = longest(w, a, runes(a.text, s.limit)); n == 0 {
			n = runes(a.text, 1)[0]
			a.text = a.text[:n]
			fitting.write(a)
			a = s.atoms[i]
		}
	}
	if n > 0 {
		s.atoms[i].text, s.atoms[i].gap = a.text[n:], gap{}
	}
	return cut{writer: fitting, at: i}
}

// longest writes as much of the atom as fits, up to one of the ends.
func longest(w writer, a atom, ends []int) (int, writer) {
	write := func(end int) writer {
		out, piece := w, a
		piece.text = a.text[:end]
		out.write(piece)
		return out
	}
	n := sort.Search(len(ends), func(i int) bool {
		try := write(ends[i])
		return !try.fits()
	})
	if n == 0 {
		return 0, w
	}
	return ends[n-1], write(ends[n-1])
}

// clusters returns where the first grapheme clusters of s end, at most limit.
func clusters(s string, limit int) []int {
	ends := runes(s, limit+1)
	if len(ends) == 0 {
		return nil
	}
	s = s[:ends[len(ends)-1]]
	var out []int
	for at, state, rest := 0, -1, s; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		at += len(cluster)
		out = append(out, at)
	}
	return out
}

// runes returns where the first code points of s end, at most limit.
func runes(s string, limit int) []int {
	var out []int
	for i, r := range s {
		if len(out) == limit {
			break
		}
		out = append(out, i+len(string(r)))
	}
	return out
}
