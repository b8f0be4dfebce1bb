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

// What a word of a query weighs where it says little: verbs with which one asks
// for anything, and words of praise, time and number. Both also occur in names of
// tools, so they are not dropped.
const (
	askWeight   = 0.7
	vagueWeight = 0.4
)

// lexicon knows the English words that tell little about what a tool does, and those
// that mean much the same.
type lexicon struct {
	stop   map[string]bool    // as written
	weight map[string]float64 // in a query, by stem; 1 for others
	alike  map[string][]kin   // by stem
	other  map[string]int     // of other languages, as written
}

func newLexicon() lexicon {
	l := lexicon{stop: map[string]bool{}, weight: map[string]float64{}, alike: alike(), other: otherLanguages()}
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
