package wording

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// NearestName returns the known name nearest to a mistyped one, or else one that begins with typed.
// The edit distance may be 2 or a third of the length, whichever is more, but 1 for less than four
// bytes. NearestName returns "" if no name is near.
func NearestName(typed string, known []string) string {
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
