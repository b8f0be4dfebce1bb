package search

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// coverage is how much more a tool scores that has all words of a query.
const coverage = 0.3

// Ranked is a document with its score.
type Ranked struct {
	// Doc is the place of the document among those the index was built from.
	Doc   int
	Score float64
}

// Ranking is the answer to a query, the best first, equal ones by name.
type Ranking struct {
	Hits []Ranked
	// Foreign says that the query is in another language than English.
	Foreign bool
	// Weak says that no word of the query that means something was found as it
	// stands: the hits share a piece of a word, a common word or a meaning with it.
	Weak bool
}

// Ranker ranks tools for a query.
type Ranker interface {
	// Search ranks the documents of an index for a query, at most limit of them.
	Search(ctx context.Context, x *Index, query string, limit int) Ranking
}

// Words ranks by the words alone.
type Words struct{}

// Search implements [Ranker] by [Index.Search].
func (Words) Search(_ context.Context, x *Index, query string, limit int) Ranking {
	return x.Search(query, limit)
}

// Search ranks the documents for a query, at most limit of them. A document whose
// name is the query comes first. No document is left out for lack of a word:
// whatever shares one with the query can be found.
func (x *Index) Search(query string, limit int) Ranking {
	if limit <= 0 {
		return Ranking{}
	}
	q := x.parse(query, false)
	var hits []Ranked
	if len(q.said()) == 0 {
		hits = x.named(query, limit)
	}
	if len(hits) == 0 {
		hits = x.rank(q, limit)
	}
	if len(hits) == 0 {
		q = x.parse(query, true)
		q.known = false
		hits = x.rank(q, limit)
	}
	hits = x.exactFirst(query, hits, limit)
	return Ranking{Hits: hits, Weak: !q.known && len(hits) > 0, Foreign: x.lex.foreign(query)}
}

// rank scores the documents by their words and by what they mean.
func (x *Index) rank(q query, limit int) []Ranked {
	scores := x.score(q.said())
	x.join(scores, q)
	return x.best(scores, limit)
}

// score says what words of a query are worth in each document. Of the ways to say a
// word the best counts.
func (x *Index) score(terms []term) []float64 {
	scores := make([]float64, len(x.docs))
	hits := make([]float64, len(x.docs))
	word := make([]float32, len(x.docs)) // what one word is worth
	var met []int32
	for _, t := range terms {
		met = met[:0]
		for _, w := range t.ways {
			for _, p := range x.postings[w.id] {
				if word[p.doc] == 0 {
					met = append(met, p.doc)
				}
				word[p.doc] = max(word[p.doc], float32(w.worth)*p.worth)
			}
		}
		for _, doc := range met {
			scores[doc] += float64(word[doc])
			hits[doc]++
			word[doc] = 0
		}
	}
	for doc := range scores {
		scores[doc] *= 1 + coverage*hits[doc]/float64(max(len(terms), 1))
	}
	return scores
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
	for _, d := range x.names[strings.ToLower(query)] {
		front = append(front, Ranked{Doc: d, Score: math.Inf(1)})
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
