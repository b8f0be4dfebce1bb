package search

import "math"

// matchedMeaning is the weight of the meaning in [Match].
const matchedMeaning = 0.5

// Match returns how well each text matches a message: the share of the message's words that it has, by
// their IDF, plus its similarity in meaning. Unlike the scores of a search for tools, those of different
// messages can be compared, because each is a share of the best that the message can have.
func Match(texts []string, message string) []float64 {
	docs := make([]document, len(texts))
	for i, text := range texts {
		docs[i].description = text
	}
	x := newIndex(docs)
	q := x.parse(message, false)
	scores, best := make([]float64, len(x.docs)), 0.0
	for _, t := range q.terms {
		idf := math.Log(1 + (float64(len(x.docs))-0.5)/1.5) // of a word that one document has
		if id, ok := x.termIDs[t.stem]; ok {
			idf = x.idf[id]
		}
		best += t.weight * idf
		matched := map[int32]float64{}
		for _, m := range t.matches {
			for _, p := range x.postings[m.id] {
				matched[p.doc] = max(matched[p.doc], m.weight*idf)
			}
		}
		for doc, weight := range matched {
			scores[doc] += weight
		}
	}
	meant, _ := x.embedQuery(q)
	for i := range scores {
		if best > 0 {
			scores[i] /= best
		}
		scores[i] += matchedMeaning * max(0, float64(dot(&x.embeddings[i], &meant)))
	}
	return scores
}
