package search

import (
	_ "embed"
	"strings"
	"unicode"
)

//go:embed words/foreign.txt
var foreignWords string

// foreign reports whether a query is not English: it is in another script, or has more function
// words of other languages than of English. A query without any counts as English.
func (l lexicon) foreign(query string) bool {
	score := 0
	for _, w := range words(query) {
		for _, r := range w.text {
			if unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) {
				return true
			}
		}
		switch {
		case l.stop[w.text]:
			score -= surely
		default:
			score += l.other[w.text]
		}
	}
	return score >= surely
}

// Whether a word is certainly or possibly not English.
const (
	surely  = 2
	perhaps = 1
)

// otherLanguages reads the function words of other languages, without accents.
func otherLanguages() map[string]int {
	all := map[string]int{}
	for line := range strings.Lines(foreignWords) {
		weight := surely
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "~"):
			line, weight = line[1:], perhaps
		}
		for _, w := range words(line) {
			if all[w.text] == 0 {
				all[w.text] = weight
			}
		}
	}
	return all
}
