package search

import (
	_ "embed"
	"strings"

	"oneclaw/toolgroups/search/meaning"
)

//go:embed words/alike.txt
var synonymLines string

// Weights of a synonym, relative to the weight of the word that it replaces.
const (
	sameMeaningWeight    = 1.0 // synonyms on one line
	relatedMeaningWeight = 0.5 // ~ related words
	brandMeaningWeight   = 0.7 // > a brand and what it does
)

// synonym is a stem that may replace another.
type synonym struct {
	stem   string
	weight float64 // at most 1
}

// loadSynonyms reads the list of synonyms. If several lines pair the same words, the highest weight counts.
func loadSynonyms() map[string][]synonym {
	all := map[string][]synonym{}
	for line := range strings.Lines(synonymLines) {
		from, to, weight := parseSynonyms(strings.TrimSpace(line))
		for _, a := range from {
			for _, b := range to {
				if a != b {
					all[a] = withSynonym(all[a], synonym{b, weight})
				}
			}
		}
	}
	return all
}

// parseSynonyms parses a line of the list. In a search, a stem of to can replace a stem of from, with
// the given weight.
func parseSynonyms(line string) (from, to []string, weight float64) {
	stems := func(text string) (out []string) {
		for w := range strings.FieldsSeq(text) {
			out = append(out, meaning.Stem(w))
		}
		return out
	}
	switch {
	case strings.HasPrefix(line, "#"):
		return nil, nil, 0
	case strings.HasPrefix(line, ">"):
		brands, meant, _ := strings.Cut(line[1:], ":")
		return stems(brands), stems(meant), brandMeaningWeight
	case strings.HasPrefix(line, "~"):
		group := stems(line[1:])
		return group, group, relatedMeaningWeight
	}
	group := stems(line)
	return group, group, sameMeaningWeight
}

func withSynonym(list []synonym, k synonym) []synonym {
	for i := range list {
		if list[i].stem == k.stem {
			list[i].weight = max(list[i].weight, k.weight)
			return list
		}
	}
	return append(list, k)
}
