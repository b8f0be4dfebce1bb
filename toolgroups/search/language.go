package search

import (
	_ "embed"
	"strings"
	"unicode"
)

//go:embed words/foreign.txt
var foreignWords string

// foreign reports whether a query is in another language than English: in another script, or with more
// of the small words of other languages than of English ones. One that has no small words is taken
// for English.
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

// What a word says about the language of a query: it is of another than English, or it may be.
const (
	surely  = 2
	perhaps = 1
)

// otherLanguages reads the list of words of other languages than English, without accents.
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
