package memory

import (
	_ "embed"
	"math"
	"slices"
	"strings"

	"oneclaw/toolgroups/search"
	"oneclaw/toolgroups/search/meaning"
)

//go:embed words.txt
var wordLists string

// Similarities of two words, at most 1. A similarity by vectors is at most maxVectorSimilarity.
const (
	sameMeaning         = 0.85
	sameTopic           = 0.4
	samePart            = 0.6 // one word contains the other
	maxVectorSimilarity = 0.9
	minCosine           = 0.3 // cosine up to which words are unrelated
)

// Lengths in bytes from which a word counts as a part of another: at its start, or anywhere.
const (
	minPrefix    = 4
	minSubstring = 5
	minCompound  = 9
)

// lexicon knows which words mean the same or belong to one topic.
type lexicon struct {
	search.StemReader
	// synonyms, topics and exclusions are the numbers of the lists that have a stem.
	synonyms, topics, exclusions map[string][]int
	isVague, isFunction          map[string]bool
}

func newLexicon() *lexicon {
	l := &lexicon{StemReader: search.NewStemReader(), synonyms: map[string][]int{}, topics: map[string][]int{}, exclusions: map[string][]int{}, isVague: map[string]bool{}, isFunction: map[string]bool{}}
	number := 0
	for line := range strings.Lines(wordLists) {
		number++
		for _, stem := range l.StemReader.Stems(strings.TrimLeft(line, "#~?/! ")) {
			switch line[0] {
			case '#':
			case '!':
				l.isFunction[stem] = true
			case '/':
				l.exclusions[stem] = append(l.exclusions[stem], number)
			case '?':
				l.isVague[stem] = true
			case '~':
				l.topics[stem] = append(l.topics[stem], number)
			default:
				l.synonyms[stem] = append(l.synonyms[stem], number)
			}
		}
	}
	return l
}

// Stems returns the stems of a text's words, each once, without those that say nothing.
func (l *lexicon) Stems(text string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(l.StemReader.Stems(text), func(stem string) bool {
		drop := seen[stem] || l.isFunction[stem]
		seen[stem] = true
		return drop
	})
}

// partsOf returns the words of lists that a long word is composed of, as in German.
func (l *lexicon) partsOf(stem string) (parts []string) {
	if len(stem) < minCompound || l.synonyms[stem] != nil {
		return nil
	}
	for known := range l.synonyms {
		if len(known) >= minSubstring && strings.Contains(stem, known) {
			parts = append(parts, known)
		}
	}
	return parts
}

// similarity compares words by their vectors and lists. It looks up each vector once.
type similarity struct {
	*lexicon
	vectors map[string]*meaning.Vector
	parts   map[string][]string
	known   map[[2]string]float64 // by word and stem
}

// of returns the nearest of a word and its parts to another word.
func (s similarity) of(asked, stem string) float64 {
	if near, ok := s.known[[2]string{asked, stem}]; ok {
		return near
	}
	near := s.between(asked, stem)
	parts, ok := s.parts[asked]
	if !ok {
		parts = s.partsOf(asked)
		s.parts[asked] = parts
	}
	for _, part := range parts {
		near = max(near, s.between(part, stem))
	}
	s.known[[2]string{asked, stem}] = near
	return near
}

func (s similarity) vector(stem string) *meaning.Vector {
	v, ok := s.vectors[stem]
	if !ok {
		if found, known := meaning.Lookup(stem); known {
			v = &found
		}
		s.vectors[stem] = v
	}
	return v
}

// between returns how near the meanings of two stems are, from 0 to 1.
func (s similarity) between(a, b string) float64 {
	if a == b {
		return 1
	}
	if shareList(s.exclusions, a, b) {
		return 0
	}
	near := 0.0
	if x, y := s.vector(a), s.vector(b); x != nil && y != nil {
		near = max(0, cosine(x, y)-minCosine) / (1 - minCosine) * maxVectorSimilarity
	}
	switch {
	case shareList(s.synonyms, a, b):
		near = max(near, sameMeaning)
	case shareList(s.topics, a, b):
		near = max(near, sameTopic)
	}
	if isPart(a, b) || isPart(b, a) {
		near = max(near, samePart)
	}
	return near
}

func shareList(lists map[string][]int, a, b string) bool {
	return slices.ContainsFunc(lists[a], func(n int) bool { return slices.Contains(lists[b], n) })
}

func isPart(part, word string) bool {
	return len(part) >= minPrefix && strings.HasPrefix(word, part) || len(part) >= minSubstring && strings.Contains(word, part)
}

// sum returns the sum of the vectors of stems, each multiplied by its weight.
func (s similarity) sum(stems []string, weight func(string) float64) *meaning.Vector {
	var sum meaning.Vector
	for _, stem := range stems {
		if v := s.vector(stem); v != nil {
			for i := range sum {
				sum[i] += v[i] * float32(weight(stem))
			}
		}
	}
	return &sum
}

// cosine returns the cosine of the angle between two vectors; 0 if one is zero.
func cosine(x, y *meaning.Vector) float64 {
	var dot, a, b float64
	for i := range x {
		dot += float64(x[i]) * float64(y[i])
		a += float64(x[i]) * float64(x[i])
		b += float64(y[i]) * float64(y[i])
	}
	if a == 0 || b == 0 {
		return 0
	}
	return dot / math.Sqrt(a*b)
}
