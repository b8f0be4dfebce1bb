package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Weights of the ranking. They were chosen on one half of two public sets of
// queries; [Eval] measures both halves.
const (
	saturation   = 1.7  // BM25 k1
	lengthNorm   = 0.2  // BM25 b
	presence     = 0.15 // BM25+ delta
	nameWeight   = 4.5
	valueWeight  = 0.7 // of quoted words and proper names in a query
	numberWeight = 0.2 // of what begins with a digit in a query
	coverage     = 0.3 // how much more a tool scores that has all words of a query
	similarity   = 0.3 // of a word that stands in for one that no tool has
	maxSimilar   = 5
	minSimilar   = 4 // characters of a word that others may stand in for
	minShared    = 5 // bytes that such words share at least
)

// Weights of the words that the best tools of a first pass add to a query.
const (
	feedback      = 0.15
	feedbackDocs  = 5
	feedbackTerms = 10
)

// Document is what is searched of a tool.
type Document struct {
	Name        string
	Description string
	// Parameters are the names of its parameters.
	Parameters []string
	// Source says in words where it comes from: its group, its server.
	Source string
}

// Index finds documents by words. It never changes and may be used concurrently.
type Index struct {
	docs     []Document
	lex      lexicon
	ids      map[string]int // of terms
	terms    []string
	postings [][]weight // by term: documents
	forward  [][]weight // by document: terms
	idf      []float64
}

// weight is how often a term is in a document, by field and length, where id is
// the one that is not known from the place.
type weight struct {
	id int
	tf float64
}

// Ranked is a document with its score.
type Ranked struct {
	// Doc is the place of the document among those the index was built from.
	Doc   int
	Score float64
}

// Ranking is the answer to a query, the best first, equal ones by name.
type Ranking struct {
	Hits []Ranked
	// Weak says that no word of the query that means something was found as it
	// stands: the hits share a piece of a word or a common word with it.
	Weak bool
}

// NewIndex makes an index.
func NewIndex(docs []Document) *Index {
	x := &Index{docs: docs, lex: newLexicon(), ids: map[string]int{}, forward: make([][]weight, len(docs))}
	stems := map[string]string{}
	counts := make([]map[int]float64, len(docs))
	lengths := make([]float64, len(docs))
	total := 0.0
	for i, d := range docs {
		counts[i] = map[int]float64{}
		add := func(text string, w float64) { lengths[i] += w * x.count(counts[i], stems, text, w) }
		add(d.Name, nameWeight)
		add(d.Description, 1)
		add(d.Source, 1)
		for _, p := range d.Parameters {
			add(p, 1)
		}
		total += lengths[i]
	}
	x.postings = make([][]weight, len(x.terms))
	for i, tf := range counts {
		norm := 1 - lengthNorm + lengthNorm*lengths[i]*float64(len(docs))/max(total, 1)
		for id, n := range tf {
			x.forward[i] = append(x.forward[i], weight{id, n / norm})
		}
		slices.SortFunc(x.forward[i], func(a, b weight) int { return cmp.Compare(a.id, b.id) })
		for _, w := range x.forward[i] {
			x.postings[w.id] = append(x.postings[w.id], weight{i, w.tf})
		}
	}
	x.idf = make([]float64, len(x.terms))
	for id, p := range x.postings {
		df := float64(len(p))
		x.idf[id] = math.Log(1 + (float64(len(docs))-df+0.5)/(df+0.5))
	}
	return x
}

// count adds the terms of a text to a document and returns how many words it has.
func (x *Index) count(tf map[int]float64, stems map[string]string, text string, w float64) (n float64) {
	add := func(word string) {
		s, ok := stems[word]
		if !ok {
			s = stem(word)
			stems[word] = s
		}
		id, ok := x.ids[s]
		if !ok {
			id = len(x.terms)
			x.ids[s] = id
			x.terms = append(x.terms, s)
		}
		tf[id] += w
	}
	for _, word := range words(text) {
		for _, p := range word.parts {
			add(p)
			if !x.lex.stop[p] {
				n++
			}
		}
		if len(word.parts) > 1 {
			add(word.text)
		}
	}
	return n
}

// Search ranks the documents for a query, at most limit of them. A document whose
// name is the query comes first. No document is left out for lack of a word:
// whatever shares one with the query can be found.
func (x *Index) Search(query string, limit int) Ranking {
	if limit <= 0 {
		return Ranking{}
	}
	q := x.parse(query, false)
	r := Ranking{Hits: x.rank(q.terms, limit)}
	if len(r.Hits) == 0 {
		r.Hits = x.named(query, limit)
	}
	if len(r.Hits) == 0 {
		q = x.parse(query, true)
		r.Hits = x.rank(q.terms, limit)
		q.known = false
	}
	r.Hits = x.exactFirst(query, r.Hits, limit)
	r.Weak = !q.known && len(r.Hits) > 0
	return r
}

// rank scores, then once more with the words that the best have in common, which
// reorder what was found and add nothing to it.
func (x *Index) rank(terms []weight, limit int) []Ranked {
	if len(terms) == 0 {
		return nil
	}
	scores := make([]float64, len(x.docs))
	hits := make([]int, len(x.docs))
	for _, t := range terms {
		x.score(t, scores)
		for _, p := range x.postings[t.id] {
			hits[p.id]++
		}
	}
	for d := range scores {
		scores[d] *= 1 + coverage*float64(hits[d])/float64(len(terms))
	}
	for _, t := range x.feedback(x.best(scores, feedbackDocs)) {
		x.score(t, scores)
	}
	for d, n := range hits {
		if n == 0 {
			scores[d] = 0
		}
	}
	return x.best(scores, limit)
}

// score adds what a term of the query is worth to each document.
func (x *Index) score(t weight, scores []float64) {
	for _, p := range x.postings[t.id] {
		scores[p.id] += t.tf * x.idf[t.id] * (p.tf*(saturation+1)/(saturation+p.tf) + presence)
	}
}

// feedback returns the terms that mark the best documents of a first pass.
func (x *Index) feedback(best []Ranked) []weight {
	sum := 0.0
	for _, r := range best {
		sum += r.Score
	}
	worth := map[int]float64{}
	for _, r := range best {
		for _, t := range x.forward[r.Doc] {
			if !x.lex.stop[x.terms[t.id]] {
				worth[t.id] += r.Score / sum * t.tf / (saturation + t.tf) * x.idf[t.id]
			}
		}
	}
	terms := make([]weight, 0, len(worth))
	for id, w := range worth {
		terms = append(terms, weight{id, w})
	}
	slices.SortFunc(terms, func(a, b weight) int { return cmp.Or(cmp.Compare(b.tf, a.tf), cmp.Compare(a.id, b.id)) })
	terms = terms[:min(len(terms), feedbackTerms)]
	for i := len(terms) - 1; i >= 0; i-- {
		terms[i].tf *= feedback / terms[0].tf
	}
	return terms
}

// best returns the n documents with the highest scores above zero.
func (x *Index) best(scores []float64, n int) []Ranked {
	out := make([]Ranked, 0, min(n, len(scores))+1)
	for d, s := range scores {
		if s <= 0 || len(out) == n && x.compare(Ranked{d, s}, out[n-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(out, Ranked{d, s}, x.compare)
		out = slices.Insert(out, at, Ranked{d, s})
		out = out[:min(len(out), n)]
	}
	return out
}

func (x *Index) compare(a, b Ranked) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(x.docs[a.Doc].Name, x.docs[b.Doc].Name),
		cmp.Compare(a.Doc, b.Doc))
}

// named finds the query as a piece of a name, ignoring case and separators.
func (x *Index) named(query string, limit int) []Ranked {
	scores := make([]float64, len(x.docs))
	piece := squash(query)
	if utf8.RuneCountInString(piece) < 2 {
		return nil
	}
	for d, doc := range x.docs {
		if strings.Contains(squash(doc.Name), piece) {
			scores[d] = 1
		}
	}
	return x.best(scores, limit)
}

// exactFirst puts the documents whose name is the query in front, then those whose
// name holds it, if it is written like a name.
func (x *Index) exactFirst(query string, hits []Ranked, limit int) []Ranked {
	query = strings.TrimSpace(query)
	var front []Ranked
	for d, doc := range x.docs {
		if strings.EqualFold(doc.Name, query) {
			front = append(front, Ranked{Doc: d, Score: math.Inf(1)})
		}
	}
	slices.SortFunc(front, x.compare)
	if strings.ContainsAny(query, "_-.:/") && !strings.ContainsFunc(query, unicode.IsSpace) {
		front = append(front, x.named(query, limit)...)
	}
	if len(front) == 0 {
		return hits
	}
	var out []Ranked
	for _, h := range append(front, hits...) {
		if len(out) < limit && !slices.ContainsFunc(out, func(o Ranked) bool { return o.Doc == h.Doc }) {
			out = append(out, h)
		}
	}
	return out
}

// squash keeps the letters and digits.
func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if inWord(r) {
			return r
		}
		return -1
	}, strings.ToLower(fold(s)))
}
