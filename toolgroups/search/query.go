package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"oneclaw/toolgroups/search/meaning"
)

// maxTerms bounds the terms of a query: what is longer is a document, not a wish.
const maxTerms = 200

// What a word of a query counts.
const (
	numberWeight  = 0.2 // begins with a digit
	alikeWeight   = 0.3 // means the same as one that the catalogue has
	standInWeight = 0.5 // means the same, and the catalogue has no other
	similarity    = 0.3 // looks like one that no tool has
)

// calmSize is how many tools a catalogue has before other words than those of a query count less.
const calmSize = 800

const (
	maxSimilar = 5
	minSimilar = 4 // characters of a word that others may stand in for
	minShared  = 5 // bytes that such words share at least
)

// query collects the words of a query; each counts once, with its best weight.
type query struct {
	index *Index
	terms []term
	at    map[string]int // by stem
	// known says that a document has one of the words as it stands.
	known bool
}

// term is a word of a query: the terms of the index that can say it.
type term struct {
	stem  string
	worth float64
	ways  []way
}

// way is a term of the index, with what it is worth in the query.
type way struct {
	id    int
	worth float64
}

// parse reads a query. common says whether stop words count too.
func (x *Index) parse(text string, common bool) query {
	q := query{index: x, at: map[string]int{}}
	prev := ""
	for _, w := range words(text) {
		worth := 1.0
		if number(w.text) {
			worth = numberWeight
		}
		for _, p := range w.parts {
			if common || !x.lex.stop[p] {
				q.add(meaning.Stem(p), worth)
			}
		}
		if len(w.parts) > 1 {
			q.whole(meaning.Stem(w.text), worth)
		}
		if prev != "" {
			// "you tube" is youtube.
			q.whole(meaning.Stem(prev+w.text), worth)
		}
		prev = w.text
		if len(q.terms) >= maxTerms {
			break
		}
	}
	return q
}

// said returns the words that some document has, or something like them.
func (q query) said() []term {
	return slices.DeleteFunc(slices.Clone(q.terms), func(t term) bool { return len(t.ways) == 0 })
}

// number reports whether a word is a number, date or time (5th, 10am), rather an argument.
func number(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.IsDigit(first)
}

// add enters a word with those that mean the same, or what looks like one that no
// document has.
func (q *query) add(word string, worth float64) {
	x := q.index
	worth *= cmp.Or(x.lex.weight[word], 1)
	if i, ok := q.at[word]; ok {
		q.raise(i, worth)
		return
	}
	t := term{stem: word, worth: worth}
	other := standInWeight
	if id, ok := x.ids[word]; ok {
		q.known = true
		t.ways = append(t.ways, way{id, worth})
		other = alikeWeight * x.damping
	}
	for _, k := range x.lex.alike[word] {
		if id, ok := x.ids[k.stem]; ok {
			t.ways = append(t.ways, way{id, worth * other * k.near})
		}
	}
	if len(t.ways) == 0 {
		for _, id := range x.similar(word) {
			t.ways = append(t.ways, way{id, worth * similarity})
		}
	}
	q.enter(t)
}

// whole enters a word only if some document has it.
func (q *query) whole(word string, worth float64) {
	id, ok := q.index.ids[word]
	if !ok {
		return
	}
	q.known = true
	if i, ok := q.at[word]; ok {
		q.raise(i, worth)
		return
	}
	q.enter(term{stem: word, worth: worth, ways: []way{{id, worth}}})
}

func (q *query) enter(t term) {
	q.at[t.stem] = len(q.terms)
	q.terms = append(q.terms, t)
}

// raise lets a word that comes again count with its best weight.
func (q *query) raise(i int, worth float64) {
	t := &q.terms[i]
	if worth <= t.worth {
		return
	}
	for k := range t.ways {
		t.ways[k].worth *= worth / t.worth
	}
	t.worth = worth
}

// similar returns terms that may be meant by one that no document has: another
// form of it, one it is a part of, one that a slip of the finger away.
func (x *Index) similar(term string) []int {
	first, _ := utf8.DecodeRuneInString(term)
	n := utf8.RuneCountInString(term)
	if dense(first) && n > 1 || !dense(first) && n < minSimilar {
		return nil
	}
	var out, slips []int
	if dense(first) || len(term) >= minShared {
		out = x.spelling.holding(term)
	}
	shared := max(minShared, len(term)-3)
	for _, id := range x.spelling.beginning(term[0]) {
		switch t := x.terms[id]; {
		case !dense(first) && len(term) >= shared && len(t) <= len(term)+4 && strings.HasPrefix(t, term[:shared]):
			out = append(out, id)
		case slip(term, t):
			slips = append(slips, id)
		}
	}
	if len(out) == 0 {
		out = slips
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxSimilar)]
}

// slip reports whether words differ by a letter missing, added, changed or swapped, not the first.
func slip(a, b string) bool {
	if len(b) < minSimilar || a[0] != b[0] {
		return false
	}
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch len(a) - len(b) {
	case 1:
		return a[1:] == b
	case -1:
		return a == b[1:]
	case 0:
		return a == "" || a[1:] == b[1:] || len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
	}
	return false
}
