package search

import (
	_ "embed"
	"strings"
	"sync"

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

// lexiconOnce returns the lexicon, which is read at the first use and never changes.
var lexiconOnce = sync.OnceValue(newLexicon)

func newLexicon() lexicon {
	l := lexicon{isStopWord: readStopWords(), queryWeight: map[string]float64{}, synonyms: loadSynonyms(), foreignWeights: loadForeignWords()}
	for w := range strings.FieldsSeq(askWords) {
		l.queryWeight[meaning.Stem(w)] = askWeight
	}
	for w := range strings.FieldsSeq(vagueWords) {
		l.queryWeight[meaning.Stem(w)] = vagueWeight
	}
	return l
}

func readStopWords() map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(stopWords) {
		all[w] = true
	}
	return all
}

// StemReader splits texts into stems.
type StemReader struct{ isStopWord map[string]bool }

// NewStemReader returns a StemReader.
func NewStemReader() StemReader { return StemReader{readStopWords()} }

// Stems returns the stems of a text's words in their order, without stop words.
func (r StemReader) Stems(text string) []string {
	var stems []string
	for _, w := range splitWords(text) {
		for _, p := range w.parts {
			if !r.isStopWord[p] {
				stems = append(stems, meaning.Stem(p))
			}
		}
	}
	return stems
}
