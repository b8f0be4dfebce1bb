package search

import (
	"math"

	"oneclaw/toolgroups/search/meaning"
)

const (
	// meaningWeight weighs the meaning of a document against its words.
	meaningWeight = 0.6
	// nearEnough is the cosine from which a document without a word of the query is listed.
	nearEnough = 0.4
	// strangeIDF, times the logarithm of the number of documents, is the IDF of a word that no
	// document has.
	strangeIDF = 0.8
)

// meaning returns the vector of a query; false if no word has one.
func (x *Index) meaning(q query) (v meaning.Vector, ok bool) {
	for _, t := range q.terms {
		of, has := meaning.Of(t.stem)
		if !has {
			continue
		}
		ok = true
		idf := strangeIDF * math.Log(1+float64(len(x.docs)))
		if id, known := x.ids[t.stem]; known {
			idf = x.idf[id]
		}
		addScaled(&v, &of, float32(t.worth*idf))
	}
	return normalize(&v), ok
}

// join adds meaning to the scores of words: both in standard deviations, so that neither
// dominates. A document that shares no word keeps no score unless its meaning is near.
func (x *Index) join(scores []float64, q query) {
	wanted, ok := x.meaning(q)
	if !ok {
		return
	}
	cosines := make([]float64, len(x.docs))
	listed := make([]bool, len(x.docs))
	for i := range x.meanings {
		cosines[i] = float64(dot(&x.meanings[i], &wanted))
		listed[i] = scores[i] > 0 || cosines[i] >= nearEnough
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

// standardize gives values the mean 0 and the deviation 1, or 0 if all are equal.
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

// addScaled adds a multiple of a vector to another.
func addScaled(to, by *meaning.Vector, weight float32) {
	for i := range to {
		to[i] += weight * by[i]
	}
}

func normalize(v *meaning.Vector) meaning.Vector {
	if length := math.Sqrt(float64(dot(v, v))); length > 0 {
		for i := range v {
			v[i] /= float32(length)
		}
	}
	return *v
}

// dot uses four sums, which the processor computes in parallel.
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
