package search

import (
	"encoding/json"
	"slices"

	"oneclaw/toolgroups"
)

// Bounds of a turn that searches in vain.
const (
	// FruitlessAdvice is after how many searches without a hit in a row the model is
	// told to stop, FruitlessStop after how many no more are run.
	FruitlessAdvice = 3
	FruitlessStop   = 6
	// SameSearch is after how many searches for the same words no more are run.
	SameSearch = 3
)

// Fruitless counts the searches at the end of a turn that found nothing, since the
// last one that found something or the last tool that was described or called.
func Fruitless(turn []toolgroups.PastCall) int {
	n := 0
	for _, p := range turn {
		switch {
		case p.Tool != ToolSearch && p.OK:
			n = 0
		case p.Tool != ToolSearch, !p.OK:
		case barren(p.Result):
			n++
		default:
			n = 0
		}
	}
	return n
}

// repeated counts the searches of a turn for the same words.
func repeated(turn []toolgroups.PastCall, texts []string) int {
	n := 0
	for _, p := range turn {
		if p.Tool == ToolSearch && p.OK {
			if w, fault := queries(json.RawMessage(p.Arguments)); fault == nil && slices.Equal(w.texts, texts) {
				n++
			}
		}
	}
	return n
}

// barren reports whether the result of a search holds no hit.
func barren(result string) bool {
	var r struct {
		Matches []any `json:"matches"`
		Results []struct {
			Matches []any `json:"matches"`
		} `json:"results"`
	}
	if json.Unmarshal([]byte(result), &r) != nil || len(r.Matches) > 0 {
		return false
	}
	for _, one := range r.Results {
		if len(one.Matches) > 0 {
			return false
		}
	}
	return true
}
