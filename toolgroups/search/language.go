package search

import (
	_ "embed"
	"strings"
	"unicode"
)

//go:embed words/foreign.txt
var foreignWords string

// isForeign reports whether a query is not English: it has a letter that is not Latin, or its function
// words from other languages outweigh those from English. A query without function words counts as
// English.
func (l lexicon) isForeign(query string) bool {
	score := 0
	for _, w := range splitWords(query) {
		for _, r := range w.text {
			if unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) {
				return true
			}
		}
		switch {
		case l.isStopWord[w.text]:
			score -= surelyForeign
		default:
			score += l.foreignWeights[w.text]
		}
	}
	return score >= surelyForeign
}

// Weights of a word that is certainly or possibly not English.
const (
	surelyForeign   = 2
	possiblyForeign = 1
)

// loadForeignWords reads the function words of other languages, without accents, with their weights.
func loadForeignWords() map[string]int {
	all := map[string]int{}
	for line := range strings.Lines(foreignWords) {
		weight := surelyForeign
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "~"):
			line, weight = line[1:], possiblyForeign
		}
		for _, w := range splitWords(line) {
			if all[w.text] == 0 {
				all[w.text] = weight
			}
		}
	}
	return all
}
