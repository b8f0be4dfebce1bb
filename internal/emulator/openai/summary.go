package openai

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxSentences bounds the sentences that are considered in a long document.
const maxSentences = 2000

var sentenceEnd = regexp.MustCompile(`[.!?]["”')\]]?\s+`)

// sentences splits prose at the ends of sentences and at empty lines, and joins the lines of a
// paragraph.
func sentences(text string) []string {
	var list []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		paragraph = strings.Join(strings.Fields(paragraph), " ")
		start := 0
		for _, at := range sentenceEnd.FindAllStringIndex(paragraph, -1) {
			if isAbbreviation(paragraph[start:at[0]]) {
				continue
			}
			list = append(list, strings.TrimSpace(paragraph[start:at[1]]))
			start = at[1]
		}
		if rest := strings.TrimSpace(paragraph[start:]); rest != "" {
			list = append(list, rest)
		}
		if len(list) > maxSentences {
			return list[:maxSentences]
		}
	}
	return list
}

// isAbbreviation reports whether a full stop after s does not end a sentence: "e.g.", "Dr.", "J.".
func isAbbreviation(s string) bool {
	word := s[strings.LastIndexByte(s, ' ')+1:]
	switch strings.ToLower(word) {
	case "e.g", "i.e", "dr", "mr", "mrs", "ms", "prof", "no", "fig", "vs", "etc", "st", "approx":
		return true
	}
	return len(word) == 1 && unicode.IsUpper(rune(word[0]))
}

const commonWords = " the a an and or but of to in on at for from by with without as is are was were be been being it its this that these those there here we you they he she i our your their his her not no nor so if then than when which who whom whose what how can could may might must shall should will would do does did has have had into over under between about also such each other more most some any all one two only very up out "

// rareWords returns the words of a text that are not common, in lower case.
func rareWords(text string) []string {
	list := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.DeleteFunc(list, func(w string) bool { return len(w) < 3 || strings.Contains(commonWords, " "+w+" ") })
}

// summarize returns the n sentences with the most frequent words, in their original order. It prefers
// early sentences.
func summarize(text string, n int) []string {
	all := sentences(text)
	weight := map[string]float64{}
	for _, w := range rareWords(text) {
		weight[w]++
	}
	type scored struct {
		at    int
		score float64
	}
	var ranked []scored
	for i, s := range all {
		list := rareWords(s)
		if len(list) < 4 || len(s) > 500 {
			continue
		}
		sum := 0.0
		for _, w := range list {
			sum += weight[w]
		}
		score := sum / float64(len(list)+3)
		if i < 3 {
			score *= 1.3
		}
		ranked = append(ranked, scored{i, score})
	}
	slices.SortStableFunc(ranked, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	ranked = ranked[:min(n, len(ranked))]
	slices.SortFunc(ranked, func(a, b scored) int { return cmp.Compare(a.at, b.at) })
	var picked []string
	for _, r := range ranked {
		picked = append(picked, all[r.at])
	}
	if len(picked) == 0 && len(all) > 0 {
		picked = all[:min(n, len(all))]
	}
	return picked
}

func bullets(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = "- " + shorten(s, 400)
	}
	return out
}
