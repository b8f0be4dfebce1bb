package search

import (
	"math"
	"strings"

	"oneclaw/toolgroups/search/meaning"
)

// Weights of the ranking, which held on query sets that nothing was tuned on; [Eval] measures
// any set.
const (
	saturation = 2   // BM25 k1
	lengthNorm = 0.6 // BM25 b
	nameWeight = 3
)

// Weights of the fields in the meaning of a document.
const (
	nameMeaning      = 2
	textMeaning      = 1
	parameterMeaning = 0.3
)

// Document is the searchable text of a tool.
type Document struct {
	Name        string
	Description string
	// Parameters are the names of the parameters.
	Parameters []string
	// Source is the origin in words: the group, the server.
	Source string
}

// Index finds documents by words. It is immutable and may be used concurrently.
type Index struct {
	docs     []Document
	lex      lexicon
	ids      map[string]int // of terms
	terms    []string
	postings [][]posting // by term
	idf      []float64
	spelling spelling
	names    map[string][]int // in lower case: documents
	meanings []meaning.Vector // by document
	damping  float64          // of synonyms and meanings, in large catalogues
}

// posting is a document that has a term, with the term's weight in it.
type posting struct {
	doc   int32
	worth float32
}

// NewIndex makes an index.
func NewIndex(docs []Document) *Index {
	x := &Index{docs: docs, lex: newLexicon(), ids: map[string]int{}, names: map[string][]int{}}
	// Among more tools, more of them match only by meaning.
	x.damping = min(1, math.Sqrt(float64(largeCatalogue)/float64(max(len(docs), 1))))
	b := builder{index: x, runs: map[string]terms{}, lengths: make([]float64, len(docs))}
	for i, d := range docs {
		name := strings.ToLower(d.Name)
		x.names[name] = append(x.names[name], i)
		b.document(i, d)
	}
	b.weigh()
	b.mean()
	x.spelling = newSpelling(x.terms)
	return x
}

// builder collects the terms of documents.
type builder struct {
	index   *Index
	runs    map[string]terms // by run of characters
	uses    [][]use          // by term, ordered by document
	lengths []float64
	total   float64
}

// terms are the terms of a run of characters; length counts its meaningful words.
type terms struct {
	ids    []int
	length float64
}

// use is how a document uses a term: frequency by field, and its share of the meaning.
type use struct {
	doc          int32
	count, share float32
}

func (b *builder) document(doc int, d Document) {
	b.field(doc, d.Name, nameWeight, nameMeaning)
	b.field(doc, d.Description, 1, textMeaning)
	b.field(doc, d.Source, 1, textMeaning)
	for _, p := range d.Parameters {
		b.field(doc, p, 1, parameterMeaning)
	}
	b.total += b.lengths[doc]
}

// field adds the terms of a text to a document.
func (b *builder) field(doc int, text string, weight float64, share float32) {
	for run := range runs(text) {
		t, known := b.runs[run]
		if !known {
			t = b.terms(run)
			b.runs[strings.Clone(run)] = t
		}
		for _, id := range t.ids {
			b.add(doc, id, float32(weight), share)
		}
		b.lengths[doc] += weight * t.length
	}
}

func (b *builder) terms(run string) (t terms) {
	for _, word := range wordsOfRun(run) {
		for _, p := range word.parts {
			t.ids = append(t.ids, b.term(p))
			if !b.index.lex.stop[p] {
				t.length++
			}
		}
		if len(word.parts) > 1 {
			t.ids = append(t.ids, b.term(word.text))
		}
	}
	return t
}

func (b *builder) add(doc, id int, weight, share float32) {
	list := b.uses[id]
	if n := len(list); n == 0 || list[n-1].doc != int32(doc) { //nolint:gosec // No catalogue has as many tools.
		list = append(list, use{doc: int32(doc)}) //nolint:gosec // as above
		b.uses[id] = list
	}
	u := &list[len(list)-1]
	u.count += weight
	u.share = max(u.share, share)
}

// term returns the number of a word's stem, which it adds if new.
func (b *builder) term(word string) int {
	s := meaning.Stem(word)
	id, ok := b.index.ids[s]
	if !ok {
		id = len(b.index.terms)
		b.index.ids[s] = id
		b.index.terms = append(b.index.terms, s)
		b.uses = append(b.uses, nil)
	}
	return id
}

// weigh makes the postings: BM25 without the query's part.
func (b *builder) weigh() {
	x, n := b.index, float64(len(b.lengths))
	x.postings = make([][]posting, len(x.terms))
	x.idf = make([]float64, len(x.terms))
	for id, uses := range b.uses {
		df := float64(len(uses))
		x.idf[id] = math.Log(1 + (n-df+0.5)/(df+0.5))
		x.postings[id] = make([]posting, len(uses))
		for i, u := range uses {
			tf := float64(u.count) / (1 - lengthNorm + lengthNorm*b.lengths[u.doc]*n/max(b.total, 1))
			worth := x.idf[id] * tf * (saturation + 1) / (saturation + tf)
			x.postings[id][i] = posting{u.doc, float32(worth)}
		}
	}
}

// mean computes the vector of each document.
func (b *builder) mean() {
	x := b.index
	x.meanings = make([]meaning.Vector, len(x.docs))
	for id, uses := range b.uses {
		v, ok := meaning.Of(x.terms[id])
		if !ok || x.lex.stop[x.terms[id]] {
			continue
		}
		for _, u := range uses {
			addScaled(&x.meanings[u.doc], &v, u.share*float32(x.idf[id]))
		}
	}
	for i := range x.meanings {
		normalize(&x.meanings[i])
	}
}
