package wording

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the known name nearest to a mistyped one: at most two letters or a third of
// them differ, or it begins with what was typed. It is empty if none is near.
func Nearest(typed string, known []string) string {
	best, fewest := "", max(2, len(typed)/3)+1
	if len(typed) < 4 {
		fewest = 2
	}
	for _, name := range known {
		if distance := levenshtein.ComputeDistance(strings.ToLower(typed), strings.ToLower(name)); distance < fewest {
			best, fewest = name, distance
		}
	}
	if best != "" {
		return best
	}
	for _, name := range known {
		if len(typed) > 1 && strings.HasPrefix(name, strings.ToLower(typed)) {
			return name
		}
	}
	return ""
}
