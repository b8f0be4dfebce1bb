package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// allWordsBonus is the bonus for a tool that matches all words of a query.
const allWordsBonus = 0.3

// scoredDocument is a document with its score.
type scoredDocument struct {
	// Doc is the index of the document in the input of [newIndex].
	Doc   int
	Score float64
}

// ranking is the result of a query.
type ranking struct {
	// hits are the best first: those whose name is the query, those whose name contains a query that
	// looks like a name, and then the others by score and name.
	hits []scoredDocument
	// isForeignQuery is set if the query is not English.
	isForeignQuery bool
	// weak is set if no meaningful word of the query was found exactly: the hits share a part of a
	// word, a common word or a meaning with it.
	weak bool
}

// search ranks the documents for a query, at most limit of them. A document whose name is the
// query comes first. Sharing one word with the query is enough to be found.
func (x *wordIndex) search(query string, limit int) ranking {
	if limit <= 0 {
		return ranking{}
	}
	q := x.parse(query, false)
	var hits []scoredDocument
	if len(q.matchedTerms()) == 0 {
		hits = x.matchNames(query, limit)
	}
	if len(hits) == 0 {
		hits = x.rank(q, limit)
	}
	if len(hits) == 0 {
		q = x.parse(query, true)
		q.hasKnownWord = false
		hits = x.rank(q, limit)
	}
	hits = x.promoteExact(query, hits, limit)
	return ranking{hits: hits, weak: !q.hasKnownWord && len(hits) > 0, isForeignQuery: x.lex.isForeign(query)}
}

// rank scores the documents by words and meaning.
func (x *wordIndex) rank(q query, limit int) []scoredDocument {
	scores := x.score(q.matchedTerms())
	x.addMeaningScores(scores, q)
	return x.topDocuments(scores, limit)
}

// score sums the weights of a query's words in each document. If several terms match a word, the
// best counts.
func (x *wordIndex) score(terms []term) []float64 {
	scores := make([]float64, len(x.docs))
	hits := make([]float64, len(x.docs))
	word := make([]float32, len(x.docs)) // weight of one word
	var met []int32
	for _, t := range terms {
		met = met[:0]
		for _, w := range t.matches {
			for _, p := range x.postings[w.id] {
				if word[p.doc] == 0 {
					met = append(met, p.doc)
				}
				word[p.doc] = max(word[p.doc], float32(w.weight)*p.weight)
			}
		}
		for _, doc := range met {
			scores[doc] += float64(word[doc])
			hits[doc]++
			word[doc] = 0
		}
	}
	for doc := range scores {
		scores[doc] *= 1 + allWordsBonus*hits[doc]/float64(max(len(terms), 1))
	}
	return scores
}

// topDocuments returns the n documents with the highest scores above zero.
func (x *wordIndex) topDocuments(scores []float64, n int) []scoredDocument {
	out := make([]scoredDocument, 0, min(n, len(scores))+1)
	for d, s := range scores {
		if s <= 0 || len(out) == n && x.compare(scoredDocument{d, s}, out[n-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(out, scoredDocument{d, s}, x.compare)
		out = slices.Insert(out, at, scoredDocument{d, s})
		out = out[:min(len(out), n)]
	}
	return out
}

func (x *wordIndex) compare(a, b scoredDocument) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(x.docs[a.Doc].name, x.docs[b.Doc].name),
		cmp.Compare(a.Doc, b.Doc))
}

// matchNames returns the documents whose names contain the query, ignoring case and separators.
func (x *wordIndex) matchNames(query string, limit int) []scoredDocument {
	scores := make([]float64, len(x.docs))
	piece := lettersAndDigits(query)
	if utf8.RuneCountInString(piece) < 2 {
		return nil
	}
	for d, doc := range x.docs {
		if strings.Contains(lettersAndDigits(doc.name), piece) {
			scores[d] = 1
		}
	}
	return x.topDocuments(scores, limit)
}

// promoteExact moves documents whose name is the query to the front of hits. If the query looks like
// a name, documents whose name contains it follow.
func (x *wordIndex) promoteExact(query string, hits []scoredDocument, limit int) []scoredDocument {
	query = strings.TrimSpace(query)
	var front []scoredDocument
	for _, d := range x.byName[strings.ToLower(query)] {
		front = append(front, scoredDocument{Doc: d, Score: math.Inf(1)})
	}
	slices.SortFunc(front, x.compare)
	if strings.ContainsAny(query, "_-.:/") && !strings.ContainsFunc(query, unicode.IsSpace) {
		front = append(front, x.matchNames(query, limit)...)
	}
	if len(front) == 0 {
		return hits
	}
	var out []scoredDocument
	for _, h := range append(front, hits...) {
		if len(out) < limit && !slices.ContainsFunc(out, func(o scoredDocument) bool { return o.Doc == h.Doc }) {
			out = append(out, h)
		}
	}
	return out
}

// lettersAndDigits returns the letters and digits of a text in lower case, without accents.
func lettersAndDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if isWordRune(r) {
			return r
		}
		return -1
	}, strings.ToLower(foldAccents(s)))
}
