package search

import (
	"encoding/json"
	"slices"

	"oneclaw/toolgroups"
)

// Bounds of fruitless searches in a turn.
const (
	// fruitlessAdvice is the number of searches without hits in a row after which the result advises
	// the model to stop. fruitlessStop is the number after which searches are refused.
	fruitlessAdvice = 3
	fruitlessStop   = 6
	// sameSearchStop is the number of searches for the same words after which the next is refused.
	sameSearchStop = 3
)

// fruitlessStreak counts the searches without hits since the turn's last search with hits or
// successful call of another tool.
func fruitlessStreak(turn []toolgroups.PastCall) int {
	n := 0
	for _, p := range turn {
		switch {
		case p.Tool != toolgroups.ToolSearch && p.OK:
			n = 0
		case p.Tool != toolgroups.ToolSearch, !p.OK:
		case hasNoHit(p.Result):
			n++
		default:
			n = 0
		}
	}
	return n
}

// countRepeats counts the searches in a turn that have the same queries.
func countRepeats(turn []toolgroups.PastCall, texts []string) int {
	n := 0
	for _, p := range turn {
		if p.Tool == toolgroups.ToolSearch && p.OK {
			if w, fault := parseSearchInput(json.RawMessage(p.Arguments)); fault == nil && slices.Equal(w.queries, texts) {
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
