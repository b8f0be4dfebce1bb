package search

import (
	"encoding/json"
	"slices"

	"oneclaw/toolgroups"
)

// Bounds of fruitless searches in a turn.
const (
	// FruitlessAdvice is the number of searches without hits in a row after which the model is told
	// to stop, FruitlessStop the number after which searches are refused.
	FruitlessAdvice = 3
	FruitlessStop   = 6
	// SameSearch is the number of searches for the same words after which they are refused.
	SameSearch = 3
)

// Fruitless counts the searches without hits at the end of a turn, since the last hit,
// description or call.
func Fruitless(turn []toolgroups.PastCall) int {
	n := 0
	for _, p := range turn {
		switch {
		case p.Tool != ToolSearch && p.OK:
			n = 0
		case p.Tool != ToolSearch, !p.OK:
		case hasNoHit(p.Result):
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

// hasNoHit reports whether the result of a search has no hit.
func hasNoHit(result string) bool {
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
