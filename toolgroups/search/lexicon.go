package search

import (
	_ "embed"
	"strings"

	"oneclaw/toolgroups/search/meaning"
)

//go:embed words/stop.txt
var stopWords string

//go:embed words/ask.txt
var askWords string

//go:embed words/vague.txt
var vagueWords string

// Weights of words that say little in a query: verbs of asking, and words of praise, time and
// number. Both also occur in names of tools, so they are not dropped.
const (
	askWeight   = 0.7
	vagueWeight = 0.4
)

// lexicon knows words that say little about what a tool does, synonyms, and words of other
// languages.
type lexicon struct {
	stop   map[string]bool      // as written
	weight map[string]float64   // in a query, by stem; 1 for others
	alike  map[string][]synonym // by stem
	other  map[string]int       // of other languages, as written
}

func newLexicon() lexicon {
	l := lexicon{stop: map[string]bool{}, weight: map[string]float64{}, alike: loadSynonyms(), other: otherLanguages()}
	for w := range strings.FieldsSeq(stopWords) {
		l.stop[w] = true
	}
	for w := range strings.FieldsSeq(askWords) {
		l.weight[meaning.Stem(w)] = askWeight
	}
	for w := range strings.FieldsSeq(vagueWords) {
		l.weight[meaning.Stem(w)] = vagueWeight
	}
	return l
}
