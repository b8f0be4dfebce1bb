package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"oneclaw/toolgroups/search/meaning"
)

// maxTerms bounds the words of a query; further words are ignored.
const maxTerms = 200

// Weights of the words of a query.
const (
	numberWeight       = 0.2 // word that begins with a digit
	knownSynonymWeight = 0.3 // synonym of a word that the catalogue has
	replacementWeight  = 0.5 // synonym of a word that the catalogue lacks
	misspellingWeight  = 0.3 // similar spelling of a word that the catalogue lacks
)

// largeCatalogue is the number of tools from which synonyms and embeddings count less.
const largeCatalogue = 800

const (
	maxSimilar = 5
	minSimilar = 4 // characters of a word that may be misspelled
	minShared  = 5 // bytes of the shortest common prefix or substring
)

// query collects the words of a query; each counts once, with its best weight.
type query struct {
	index  *wordIndex
	terms  []term
	byStem map[string]int // indexes in terms
	// hasKnownWord is true if a document has one of the words exactly.
	hasKnownWord bool
}

// term is a word of a query, with the terms of the index that match it.
type term struct {
	stem    string
	weight  float64
	matches []match
}

// match is a matching term of the index, with its weight.
type match struct {
	id     int
	weight float64
}

// parse parses a query. Stop words are ignored unless common is true.
func (x *wordIndex) parse(text string, common bool) query {
	q := query{index: x, byStem: map[string]int{}}
	prev := ""
	for _, w := range splitWords(text) {
		worth := 1.0
		if isNumber(w.text) {
			worth = numberWeight
		}
		for _, p := range w.parts {
			if common || !x.lex.isStopWord[p] {
				q.addWord(meaning.Stem(p), worth)
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

// matchedTerms returns the words that match a term of the index.
func (q query) matchedTerms() []term {
	return slices.DeleteFunc(slices.Clone(q.terms), func(t term) bool { return len(t.matches) == 0 })
}

// isNumber reports whether a word is a number, date or time (5th, 10am), and so likely an
// argument.
func isNumber(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.IsDigit(first)
}

// addWord adds a word with its synonyms. If nothing matches, it adds similar spellings instead.
func (q *query) addWord(word string, worth float64) {
	x := q.index
	worth *= cmp.Or(x.lex.queryWeight[word], 1)
	if i, ok := q.byStem[word]; ok {
		q.raiseWeight(i, worth)
		return
	}
	t := term{stem: word, weight: worth}
	other := replacementWeight
	if id, ok := x.termIDs[word]; ok {
		q.hasKnownWord = true
		t.matches = append(t.matches, match{id, worth})
		other = knownSynonymWeight * x.damping
	}
	for _, k := range x.lex.synonyms[word] {
		if id, ok := x.termIDs[k.stem]; ok {
			t.matches = append(t.matches, match{id, worth * other * k.weight})
		}
	}
	if len(t.matches) == 0 {
		for _, id := range x.similarTerms(word) {
			t.matches = append(t.matches, match{id, worth * misspellingWeight})
		}
	}
	q.appendTerm(t)
}

// addIfKnown adds a word only if a document has it.
func (q *query) addIfKnown(word string, worth float64) {
	id, ok := q.index.termIDs[word]
	if !ok {
		return
	}
	q.hasKnownWord = true
	if i, ok := q.byStem[word]; ok {
		q.raiseWeight(i, worth)
		return
	}
	q.appendTerm(term{stem: word, weight: worth, matches: []match{{id, worth}}})
}

func (q *query) appendTerm(t term) {
	q.byStem[t.stem] = len(q.terms)
	q.terms = append(q.terms, t)
}

// raiseWeight raises the weight of a repeated word to weight, if that is higher.
func (q *query) raiseWeight(i int, worth float64) {
	t := &q.terms[i]
	if worth <= t.weight {
		return
	}
	for k := range t.matches {
		t.matches[k].weight *= worth / t.weight
	}
	t.weight = worth
}

// similarTerms returns the IDs of at most maxSimilar terms that an unknown word may mean: another form,
// a longer word, or else one that differs by a typing error.
func (x *wordIndex) similarTerms(term string) []int {
	first, _ := utf8.DecodeRuneInString(term)
	n := utf8.RuneCountInString(term)
	if isScriptWithoutSpaces(first) && n > 1 || !isScriptWithoutSpaces(first) && n < minSimilar {
		return nil
	}
	var out, slips []int
	if isScriptWithoutSpaces(first) || len(term) >= minShared {
		out = x.spelling.containing(term)
	}
	shared := max(minShared, len(term)-3)
	for _, id := range x.spelling.startingWith(term[0]) {
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

// isTypo reports whether two words differ by at most one missing, added, changed or swapped letter that
// is not the first. It compares bytes, and returns false if b has less than four. a must not be empty.
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
