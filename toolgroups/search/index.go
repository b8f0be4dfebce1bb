package search

import (
	"math"
	"strings"

	"oneclaw/toolgroups/search/meaning"
)

// Weights of the ranking. They were checked on query sets that were not used for tuning; see
// docs/measured.md.
const (
	saturation = 2   // BM25 k1
	lengthNorm = 0.6 // BM25 b
	nameWeight = 3
)

// Weights of the fields in the embedding of a document.
const (
	nameEmbeddingWeight      = 2
	textEmbeddingWeight      = 1
	parameterEmbeddingWeight = 0.3
)

// document is the searchable text of a tool.
type document struct {
	name        string
	description string
	// parameters are the names of the parameters.
	parameters []string
	// source is the name of the group and, if different, of the server.
	source string
}

// wordIndex ranks documents for a query. It is immutable and may be used concurrently.
type wordIndex struct {
	docs       []document
	lex        lexicon
	termIDs    map[string]int // by term
	terms      []string       // stems, by ID
	postings   [][]posting    // by ID of a term
	idf        []float64      // by ID of a term
	spelling   spelling
	byName     map[string][]int // documents by name in lower case
	embeddings []meaning.Vector // by document
	damping    float64          // factor for synonyms and embeddings, below 1 in large catalogues
}

// posting is a document that has a term, with the term's weight in it.
type posting struct {
	doc    int32
	weight float32
}

// newIndex makes an index.
func newIndex(docs []document) *wordIndex {
	x := &wordIndex{docs: docs, lex: lexiconOnce(), termIDs: map[string]int{}, byName: map[string][]int{}}
	// In a larger catalogue, more tools match by meaning alone.
	x.damping = min(1, math.Sqrt(float64(largeCatalogue)/float64(max(len(docs), 1))))
	b := builder{index: x, runs: map[string]runTerms{}, lengths: make([]float64, len(docs))}
	for i, d := range docs {
		name := strings.ToLower(d.name)
		x.byName[name] = append(x.byName[name], i)
		b.addDocument(i, d)
	}
	b.computePostings()
	b.computeEmbeddings()
	x.spelling = newSpelling(x.terms)
	return x
}

// builder collects the terms of documents.
type builder struct {
	index       *wordIndex
	runs        map[string]runTerms // by run of characters
	uses        [][]termUse         // by ID of a term, ordered by document
	lengths     []float64
	totalLength float64
}

// runTerms are the IDs of the terms of a run of characters. length is the number of words that are not
// stop words.
type runTerms struct {
	ids    []int
	length float64
}

// termUse is how a document uses a term: its weighted frequency, and its weight in the embedding.
type termUse struct {
	doc                    int32
	count, embeddingWeight float32
}

func (b *builder) addDocument(doc int, d document) {
	b.addField(doc, d.name, nameWeight, nameEmbeddingWeight)
	b.addField(doc, d.description, 1, textEmbeddingWeight)
	b.addField(doc, d.source, 1, textEmbeddingWeight)
	for _, p := range d.parameters {
		b.addField(doc, p, 1, parameterEmbeddingWeight)
	}
	b.totalLength += b.lengths[doc]
}

// addField adds the terms of a text to a document.
func (b *builder) addField(doc int, text string, weight float64, share float32) {
	for run := range runs(text) {
		t, known := b.runs[run]
		if !known {
			t = b.parseRun(run)
			b.runs[strings.Clone(run)] = t
		}
		for _, id := range t.ids {
			b.addUse(doc, id, float32(weight), share)
		}
		b.lengths[doc] += weight * t.length
	}
}

func (b *builder) parseRun(run string) (t runTerms) {
	for _, word := range wordsOfRun(run) {
		for _, p := range word.parts {
			t.ids = append(t.ids, b.termID(p))
			if !b.index.lex.isStopWord[p] {
				t.length++
			}
		}
		if len(word.parts) > 1 {
			t.ids = append(t.ids, b.termID(word.text))
		}
	}
	return t
}

func (b *builder) addUse(doc, id int, weight, share float32) {
	list := b.uses[id]
	if n := len(list); n == 0 || list[n-1].doc != int32(doc) { //nolint:gosec // No catalogue has as many tools.
		list = append(list, termUse{doc: int32(doc)}) //nolint:gosec // as above
		b.uses[id] = list
	}
	u := &list[len(list)-1]
	u.count += weight
	u.embeddingWeight = max(u.embeddingWeight, share)
}

// termID returns the ID of a word's stem, and adds the stem to the index if it is new.
func (b *builder) termID(word string) int {
	s := meaning.Stem(word)
	id, ok := b.index.termIDs[s]
	if !ok {
		id = len(b.index.terms)
		b.index.termIDs[s] = id
		b.index.terms = append(b.index.terms, s)
		b.uses = append(b.uses, nil)
	}
	return id
}

// computePostings computes the BM25 weight of each term in each document.
func (b *builder) computePostings() {
	x, n := b.index, float64(len(b.lengths))
	x.postings = make([][]posting, len(x.terms))
	x.idf = make([]float64, len(x.terms))
	for id, uses := range b.uses {
		df := float64(len(uses))
		x.idf[id] = math.Log(1 + (n-df+0.5)/(df+0.5))
		x.postings[id] = make([]posting, len(uses))
		for i, u := range uses {
			tf := float64(u.count) / (1 - lengthNorm + lengthNorm*b.lengths[u.doc]*n/max(b.totalLength, 1))
			worth := x.idf[id] * tf * (saturation + 1) / (saturation + tf)
			x.postings[id][i] = posting{u.doc, float32(worth)}
		}
	}
}

// computeEmbeddings sums the vectors of each document's terms, weighted by field and IDF, and normalizes.
func (b *builder) computeEmbeddings() {
	x := b.index
	x.embeddings = make([]meaning.Vector, len(x.docs))
	for id, uses := range b.uses {
		v, ok := meaning.Lookup(x.terms[id])
		if !ok || x.lex.isStopWord[x.terms[id]] {
			continue
		}
		for _, u := range uses {
			addScaled(&x.embeddings[u.doc], &v, u.embeddingWeight*float32(x.idf[id]))
		}
	}
	for i := range x.embeddings {
		normalize(&x.embeddings[i])
	}
}
