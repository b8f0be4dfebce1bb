package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"oneclaw/toolgroups/search/meaning"
)

// maxTerms bounds the terms of a query; more of them are a document.
const maxTerms = 200

// Weights of the words of a query.
const (
	numberWeight  = 0.2 // begins with a digit
	alikeWeight   = 0.3 // synonym of a word that the catalogue has
	standInWeight = 0.5 // synonym of one that it lacks
	similarity    = 0.3 // similar spelling of one that it lacks
)

// largeCatalogue is the number of tools from which synonyms and meanings count less.
const largeCatalogue = 800

const (
	maxSimilar = 5
	minSimilar = 4 // characters of a word that may be misspelled
	minShared  = 5 // bytes that such words share at least
)

// query collects the words of a query; each counts once, with its best weight.
type query struct {
	index *Index
	terms []term
	at    map[string]int // by stem
	// known says that a document has one of the words exactly.
	known bool
}

// term is a word of a query: the terms of the index that match it.
type term struct {
	stem  string
	worth float64
	ways  []match
}

// match is a matching term of the index, with its weight.
type match struct {
	id    int
	worth float64
}

// parse parses a query. common says whether stop words count.
func (x *Index) parse(text string, common bool) query {
	q := query{index: x, at: map[string]int{}}
	prev := ""
	for _, w := range words(text) {
		worth := 1.0
		if isNumber(w.text) {
			worth = numberWeight
		}
		for _, p := range w.parts {
			if common || !x.lex.stop[p] {
				q.add(meaning.Stem(p), worth)
			}
		}
		if len(w.parts) > 1 {
			q.addIfKnown(meaning.Stem(w.text), worth)
		}
		if prev != "" {
			// "you tube" is youtube.
			q.addIfKnown(meaning.Stem(prev+w.text), worth)
		}
		prev = w.text
		if len(q.terms) >= maxTerms {
			break
		}
	}
	return q
}

// matched returns the words that match a document.
func (q query) matched() []term {
	return slices.DeleteFunc(slices.Clone(q.terms), func(t term) bool { return len(t.ways) == 0 })
}

// isNumber reports whether a word is a number, date or time (5th, 10am), and so likely an
// argument.
func isNumber(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.IsDigit(first)
}

// add adds a word with its synonyms, or similar spellings if no document has it.
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
		t.ways = append(t.ways, match{id, worth})
		other = alikeWeight * x.damping
	}
	for _, k := range x.lex.alike[word] {
		if id, ok := x.ids[k.stem]; ok {
			t.ways = append(t.ways, match{id, worth * other * k.near})
		}
	}
	if len(t.ways) == 0 {
		for _, id := range x.similar(word) {
			t.ways = append(t.ways, match{id, worth * similarity})
		}
	}
	q.enter(t)
}

// addIfKnown adds a word only if some document has it.
func (q *query) addIfKnown(word string, worth float64) {
	id, ok := q.index.ids[word]
	if !ok {
		return
	}
	q.known = true
	if i, ok := q.at[word]; ok {
		q.raise(i, worth)
		return
	}
	q.enter(term{stem: word, worth: worth, ways: []match{{id, worth}}})
}

func (q *query) enter(t term) {
	q.at[t.stem] = len(q.terms)
	q.terms = append(q.terms, t)
}

// raise keeps the best weight of a repeated word.
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

// similar returns terms that an unknown word may mean: another form, a longer word, or one with
// a typing error.
func (x *Index) similar(term string) []int {
	first, _ := utf8.DecodeRuneInString(term)
	n := utf8.RuneCountInString(term)
	if isScriptWithoutSpaces(first) && n > 1 || !isScriptWithoutSpaces(first) && n < minSimilar {
		return nil
	}
	var out, slips []int
	if isScriptWithoutSpaces(first) || len(term) >= minShared {
		out = x.spelling.holding(term)
	}
	shared := max(minShared, len(term)-3)
	for _, id := range x.spelling.beginning(term[0]) {
		switch t := x.terms[id]; {
		case !isScriptWithoutSpaces(first) && len(term) >= shared && len(t) <= len(term)+4 && strings.HasPrefix(t, term[:shared]):
			out = append(out, id)
		case isTypo(term, t):
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

// isTypo reports whether words differ by one letter missing, added, changed or swapped, but not
// the first.
func isTypo(a, b string) bool {
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
