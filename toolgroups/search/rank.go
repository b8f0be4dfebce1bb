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

// allWordsBonus is the bonus of a tool that has all words of a query.
const allWordsBonus = 0.3

// Ranked is a document with its score.
type Ranked struct {
	// Doc is the index of the document in the input of [NewIndex].
	Doc   int
	Score float64
}

// Ranking is the result of a query, the best first, equal ones by name.
type Ranking struct {
	Hits []Ranked
	// Foreign says that the query is not English.
	Foreign bool
	// Weak says that no meaningful word of the query was found exactly: the hits share a part of a
	// word, a common word or a meaning with it.
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

// Search ranks the documents for a query, at most limit of them. A document whose name is the
// query comes first. Sharing one word with the query is enough to be found.
func (x *Index) Search(query string, limit int) Ranking {
	if limit <= 0 {
		return Ranking{}
	}
	q := x.parse(query, false)
	var hits []Ranked
	if len(q.matched()) == 0 {
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

// rank scores the documents by words and meaning.
func (x *Index) rank(q query, limit int) []Ranked {
	scores := x.score(q.matched())
	x.join(scores, q)
	return x.best(scores, limit)
}

// score sums the weights of a query's words in each document. Of a word's matching terms the
// best counts.
func (x *Index) score(terms []term) []float64 {
	scores := make([]float64, len(x.docs))
	hits := make([]float64, len(x.docs))
	word := make([]float32, len(x.docs)) // weight of one word
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
		scores[doc] *= 1 + allWordsBonus*hits[doc]/float64(max(len(terms), 1))
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

// named finds the query as a part of a name, ignoring case and separators.
func (x *Index) named(query string, limit int) []Ranked {
	scores := make([]float64, len(x.docs))
	piece := lettersAndDigits(query)
	if utf8.RuneCountInString(piece) < 2 {
		return nil
	}
	for d, doc := range x.docs {
		if strings.Contains(lettersAndDigits(doc.Name), piece) {
			scores[d] = 1
		}
	}
	return x.best(scores, limit)
}

// exactFirst puts documents whose name is the query first, then those whose name contains it, if
// it looks like a name.
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

// lettersAndDigits keeps the letters and digits.
func lettersAndDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if inWord(r) {
			return r
		}
		return -1
	}, strings.ToLower(fold(s)))
}
