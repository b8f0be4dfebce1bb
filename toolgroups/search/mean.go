package search

import (
	"math"

	"oneclaw/toolgroups/search/meaning"
)

const (
	// meaningWeight is the weight of the embeddings relative to the words.
	meaningWeight = 0.6
	// minCosine is the least cosine of a listed document that shares no word with the query.
	minCosine = 0.4
	// unknownIDF, times the logarithm of the number of documents, is the IDF of a word that is in no
	// document.
	unknownIDF = 0.8
)

// embedQuery returns the vector of a query. ok is false if none of its words has a vector.
func (x *wordIndex) embedQuery(q query) (v meaning.Vector, ok bool) {
	for _, t := range q.terms {
		of, has := meaning.Lookup(t.stem)
		if !has {
			continue
		}
		ok = true
		idf := unknownIDF * math.Log(1+float64(len(x.docs)))
		if id, known := x.termIDs[t.stem]; known {
			idf = x.idf[id]
		}
		addScaled(&v, &of, float32(t.weight*idf))
	}
	normalize(&v)
	return v, ok
}

// addMeaningScores adds the similarity of embeddings to the scores by words. Both are standardized, so
// that neither dominates. A document that shares no word with the query is listed from minCosine on.
func (x *wordIndex) addMeaningScores(scores []float64, q query) {
	wanted, ok := x.embedQuery(q)
	if !ok {
		return
	}
	cosines := make([]float64, len(x.docs))
	listed := make([]bool, len(x.docs))
	for i := range x.embeddings {
		cosines[i] = float64(dot(&x.embeddings[i], &wanted))
		listed[i] = scores[i] > 0 || cosines[i] >= minCosine
	}
	standardize(scores)
	standardize(cosines)
	least := 0.0
	for i := range scores {
		scores[i] += meaningWeight * x.damping * cosines[i]
		least = min(least, scores[i])
	}
	for i := range scores {
		scores[i] += 1 - least
		if !listed[i] {
			scores[i] = 0
		}
	}
}

// standardize scales values to mean 0 and standard deviation 1. Equal values all become 0.
func standardize(values []float64) {
	mean, spread := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		spread += (v - mean) * (v - mean) / float64(len(values))
	}
	scale := 0.0
	if spread > 0 {
		scale = 1 / math.Sqrt(spread)
	}
	for i := range values {
		values[i] = (values[i] - mean) * scale
	}
}

// addScaled adds by, multiplied by weight, to the vector to.
func addScaled(to, by *meaning.Vector, weight float32) {
	for i := range to {
		to[i] += weight * by[i]
	}
}

// normalize scales v to length 1. A zero vector stays zero.
func normalize(v *meaning.Vector) {
	if length := math.Sqrt(float64(dot(v, v))); length > 0 {
		for i := range v {
			v[i] /= float32(length)
		}
	}
}

// dot returns the dot product. It uses four sums, which the processor computes in parallel.
func dot(x, y *meaning.Vector) float32 {
	var s, t, u, v float32
	a, b := x[:], y[:]
	for len(a) >= 4 && len(b) >= 4 {
		s += a[0] * b[0]
		t += a[1] * b[1]
		u += a[2] * b[2]
		v += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	return s + t + u + v
}
