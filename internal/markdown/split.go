package markdown

import (
	"sort"

	"github.com/rivo/uniseg"
)

// cutPoint is a place where a part can end: before the atom with the index at.
type cutPoint struct {
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
			parts = packParts(&splitter{rules: r, limit: limit, atoms: plain.layOut(r)})
		}
	}()
	return packParts(&splitter{rules: r, limit: limit, atoms: d.layOut(r)})
}

// packParts distributes all atoms over parts.
func packParts(s *splitter) []Part {
	var parts []Part
	for at := 0; at < len(s.atoms); {
		c := s.nextCut(at)
		at = c.at
		var next *span
		if at < len(s.atoms) {
			next = s.atoms[at].span
		}
		if p := c.writer.finishPart(next); !isBlank(p.Plain) {
			parts = append(parts, p)
		}
	}
	return parts
}

// startPart starts a part with the atom a. If a is in the body of a table, the header precedes it.
func (s *splitter) startPart(a atom) writer {
	w := writer{rules: s.rules, traits: s.rules.traits(), limit: s.limit}
	if pre := a.span.enclosing(stylePre); a.inTableBody && pre != nil && len(pre.tableHead) > 0 {
		headed := w
		for _, h := range pre.tableHead {
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

// nextCut finds the end of the part that begins with the atom at start.
func (s *splitter) nextCut(start int) cutPoint {
	var best [cutLevels]cutPoint
	w := s.startPart(s.atoms[start])
	if !w.fits() {
		empty := s.atoms[start]
		empty.text = ""
		s.atoms[start].gap = gap{}
		return s.cutAtom(s.startPart(empty), start, true)
	}
	for i := start + 1; i < len(s.atoms); i++ {
		if level := s.atoms[i].gap.cut; level != cutNever {
			best[level] = cutPoint{writer: w, at: i}
		}
		before := w
		if w.write(s.atoms[i]); w.fits() {
			continue
		}
		if c, ok := s.bestCut(best, i); ok {
			return c
		}
		return s.cutAtom(before, i, false)
	}
	return cutPoint{writer: w, at: len(s.atoms)}
}

// bestCut returns the best cut that leaves a part reasonably full. If there is none, it
// returns the latest cut, but only if the atom that did not fit would fit into the next part.
func (s *splitter) bestCut(best [cutLevels]cutPoint, overflow int) (cutPoint, bool) {
	for level := cutBlock; level > cutNever; level-- {
		enough := s.limit / 2
		if level == cutBlock {
			enough = s.limit / 3
		}
		if c := best[level]; c.at > 0 && c.writer.size() >= enough {
			return c, true
		}
	}
	var latest cutPoint
	for _, c := range best {
		if c.at > latest.at {
			latest = c
		}
	}
	if latest.at == 0 {
		return latest, false
	}
	alone := s.startPart(s.atoms[overflow])
	return latest, alone.fits()
}

// cutAtom cuts the atom at i, which does not fit after w, between grapheme
// clusters. If must is set, it takes some of the atom in any case.
func (s *splitter) cutAtom(w writer, i int, must bool) cutPoint {
	a := s.atoms[i]
	n, fitting := writeLongest(w, a, clusterEnds(a.text, s.limit))
	if n == 0 && must {
		// A cluster longer than a part is not readable text: at least keep code points whole.
		if n, fitting = writeLongest(w, a, runeEnds(a.text, s.limit)); n == 0 {
			n = runeEnds(a.text, 1)[0]
			a.text = a.text[:n]
			fitting.write(a)
			a = s.atoms[i]
		}
	}
	if n > 0 {
		s.atoms[i].text, s.atoms[i].gap = a.text[n:], gap{}
	}
	return cutPoint{writer: fitting, at: i}
}

// writeLongest writes as much of the atom as fits, up to one of ends, and returns that end.
func writeLongest(w writer, a atom, ends []int) (int, writer) {
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

// clusterEnds returns the ends of the grapheme clusters in the first limit+1 code points of s.
func clusterEnds(s string, limit int) []int {
	ends := runeEnds(s, limit+1)
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

// runeEnds returns the ends of the first code points of s, at most limit.
func runeEnds(s string, limit int) []int {
	var out []int
	for i, r := range s {
		if len(out) == limit {
			break
		}
		out = append(out, i+len(string(r)))
	}
	return out
}
