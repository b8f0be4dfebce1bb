package search

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTerms bounds the terms of a query: what is longer is a document, not a wish.
const maxTerms = 200

// query collects the terms of a query; a term counts once, with its best weight.
type query struct {
	index *Index
	terms []weight
	at    map[int]int
	// known says that a document has one of the words as it stands.
	known bool
}

// parse returns the known terms of a text. common says whether stop words count too.
func (x *Index) parse(text string, common bool) query {
	q := query{index: x, at: map[int]int{}}
	prev := ""
	for _, w := range words(text) {
		worth := 1.0
		if w.quoted {
			worth *= valueWeight
		}
		if w.capital {
			worth *= valueWeight
		}
		if number(w.text) {
			worth *= numberWeight
		}
		for _, p := range w.parts {
			if common || !x.lex.stop[p] {
				q.add(stem(p), worth)
			}
		}
		if len(w.parts) > 1 {
			q.whole(stem(w.text), worth)
		}
		if prev != "" {
			// "you tube" is youtube.
			q.whole(stem(prev+w.text), worth)
		}
		prev = w.text
		if len(q.terms) >= maxTerms {
			break
		}
	}
	return q
}

// number reports whether a word is a number, date or time (5th, 10am), rather an argument.
func number(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.IsDigit(first)
}

// add enters a term, or what is similar to one that no document has.
func (q *query) add(term string, worth float64) {
	if id, ok := q.index.ids[term]; ok {
		q.known = true
		q.enter(id, worth*cmp.Or(q.index.lex.weight[term], 1))
		return
	}
	for _, id := range q.index.similar(term) {
		q.enter(id, worth*similarity)
	}
}

// whole enters a term only if some document has it.
func (q *query) whole(term string, worth float64) {
	if id, ok := q.index.ids[term]; ok {
		q.known = true
		q.enter(id, worth)
	}
}

func (q *query) enter(id int, worth float64) {
	i, ok := q.at[id]
	if !ok {
		q.at[id] = len(q.terms)
		q.terms = append(q.terms, weight{id, worth})
		return
	}
	q.terms[i].tf = max(q.terms[i].tf, worth)
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
	shared := max(minShared, len(term)-3)
	for id, t := range x.terms {
		switch {
		case dense(first):
			if strings.Contains(t, term) {
				out = append(out, id)
			}
		case len(term) >= minShared && strings.Contains(t, term),
			len(term) >= shared && len(t) <= len(term)+4 && strings.HasPrefix(t, term[:shared]):
			out = append(out, id)
		case slip(term, t):
			slips = append(slips, id)
		}
		if len(out) == maxSimilar {
			break
		}
	}
	if len(out) == 0 {
		out = slips
	}
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
