package search

import (
	"sort"
	"strings"
)

// spelling finds terms by their letters.
type spelling struct {
	all    string     // the sorted terms, each with a line feed
	starts []int      // offsets of the terms in all
	first  [256][]int // terms by their first byte
}

func newSpelling(terms []string) spelling {
	s := spelling{starts: make([]int, len(terms))}
	var all strings.Builder
	for id, t := range terms {
		s.starts[id] = all.Len()
		all.WriteString(t + "\n")
		s.first[t[0]] = append(s.first[t[0]], id)
	}
	s.all = all.String()
	return s
}

// beginning returns the terms with a first byte, sorted.
func (s *spelling) beginning(with byte) []int { return s.first[with] }

// holding returns terms that contain a piece, at most the first few, sorted.
func (s *spelling) holding(piece string) (ids []int) {
	for at := 0; len(ids) < maxSimilar; {
		i := strings.Index(s.all[at:], piece)
		if i < 0 {
			break
		}
		id := sort.SearchInts(s.starts, at+i+1) - 1
		ids = append(ids, id)
		at = s.starts[id] + strings.IndexByte(s.all[s.starts[id]:], '\n')
	}
	return ids
}
