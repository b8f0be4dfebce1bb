package search

import (
	"sort"
	"strings"
)

// spelling finds terms by their letters.
type spelling struct {
	joined      string     // the terms in the order of their IDs, each with a line feed
	starts      []int      // offsets of the terms in joined
	byFirstByte [256][]int // IDs of terms by their first byte
}

func newSpelling(terms []string) spelling {
	s := spelling{starts: make([]int, len(terms))}
	var all strings.Builder
	for id, t := range terms {
		s.starts[id] = all.Len()
		all.WriteString(t + "\n")
		s.byFirstByte[t[0]] = append(s.byFirstByte[t[0]], id)
	}
	s.joined = all.String()
	return s
}

// startingWith returns the IDs of the terms that start with a byte, in ascending order.
func (s *spelling) startingWith(with byte) []int { return s.byFirstByte[with] }

// containing returns the IDs of the first maxSimilar terms that contain a piece, in ascending order.
func (s *spelling) containing(piece string) (ids []int) {
	for at := 0; len(ids) < maxSimilar; {
		i := strings.Index(s.joined[at:], piece)
		if i < 0 {
			break
		}
		id := sort.SearchInts(s.starts, at+i+1) - 1
		ids = append(ids, id)
		at = s.starts[id] + strings.IndexByte(s.joined[s.starts[id]:], '\n')
	}
	return ids
}
