package search

import (
	_ "embed"
	"strings"

	"oneclaw/toolgroups/search/meaning"
)

//go:embed words/alike.txt
var alikeWords string

// How far a word says what another means.
const (
	sameMeaning    = 1.0 // a line of synonyms
	relatedMeaning = 0.5 // ~ what belongs together
	brandMeaning   = 0.7 // > a brand, and what it stands for
)

// kin is a word that may stand for another, by stem.
type kin struct {
	stem string
	near float64 // how far, at most 1
}

// alike reads the list of words that mean much the same. The best of several lines counts.
func alike() map[string][]kin {
	all := map[string][]kin{}
	for line := range strings.Lines(alikeWords) {
		from, to, near := alikeLine(strings.TrimSpace(line))
		for _, a := range from {
			for _, b := range to {
				if a != b {
					all[a] = withKin(all[a], kin{b, near})
				}
			}
		}
	}
	return all
}

// alikeLine reads a line: which stems stand for which.
func alikeLine(line string) (from, to []string, near float64) {
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
		return stems(brands), stems(meant), brandMeaning
	case strings.HasPrefix(line, "~"):
		group := stems(line[1:])
		return group, group, relatedMeaning
	}
	group := stems(line)
	return group, group, sameMeaning
}

func withKin(list []kin, k kin) []kin {
	for i := range list {
		if list[i].stem == k.stem {
			list[i].near = max(list[i].near, k.near)
			return list
		}
	}
	return append(list, k)
}
