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

// Weights of words that carry little meaning in a query: verbs of asking, and words of praise, time
// and number. They also occur in names of tools, so they are not stop words.
const (
	askWeight   = 0.7
	vagueWeight = 0.4
)

// lexicon holds words that say little about what a tool does, synonyms, and words from other
// languages.
type lexicon struct {
	isStopWord     map[string]bool      // as written
	queryWeight    map[string]float64   // in a query, by stem; 1 for others
	synonyms       map[string][]synonym // by stem
	foreignWeights map[string]int       // words from other languages, as written
}

func newLexicon() lexicon {
	l := lexicon{isStopWord: map[string]bool{}, queryWeight: map[string]float64{}, synonyms: loadSynonyms(), foreignWeights: loadForeignWords()}
	for w := range strings.FieldsSeq(stopWords) {
		l.isStopWord[w] = true
	}
	for w := range strings.FieldsSeq(askWords) {
		l.queryWeight[meaning.Stem(w)] = askWeight
	}
	for w := range strings.FieldsSeq(vagueWords) {
		l.queryWeight[meaning.Stem(w)] = vagueWeight
	}
	return l
}
