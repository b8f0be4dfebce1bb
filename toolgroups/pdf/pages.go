package pdf

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// errPages is returned for a selection that is malformed or leaves the document.
var errPages = errors.New("pdf: invalid page selection")

// span is a run of pages, both ends included, the first page being 1.
type span struct{ first, last int }

// selection is a set of pages: spans in order that neither touch nor overlap.
type selection []span

// parsePages reads a selection such as "3", "1-5" or "1,3,5-7" of a document with
// count pages. Nothing but space means all pages. The selection is a set: order
// and repetition do not matter.
func parsePages(text string, count int) (selection, error) {
	if strings.TrimSpace(text) == "" {
		return selection{{1, count}}, nil
	}
	var spans selection
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseSpan(part, count)
		if err != nil {
			return nil, err
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	merged := spans[:1]
	for _, s := range spans[1:] {
		last := &merged[len(merged)-1]
		if s.first <= last.last+1 {
			last.last = max(last.last, s.last)
			continue
		}
		merged = append(merged, s)
	}
	return merged, nil
}

func parseSpan(part string, count int) (span, error) {
	from, to, ranged := strings.Cut(part, "-")
	first, err := parsePage(from, count)
	if err != nil {
		return span{}, err
	}
	if !ranged {
		return span{first, first}, nil
	}
	last, err := parsePage(to, count)
	if err != nil || last < first {
		return span{}, errPages
	}
	return span{first, last}, nil
}

// parsePage accepts plain digits only: no sign, no empty number.
func parsePage(text string, count int) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, errPages
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > count {
		return 0, errPages
	}
	return n, nil
}

// size is how many pages are selected.
func (s selection) size() int {
	n := 0
	for _, sp := range s {
		n += sp.last - sp.first + 1
	}
	return n
}

// pages yields the selected pages in order.
func (s selection) pages() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, sp := range s {
			for p := sp.first; p <= sp.last; p++ {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// from is the part of the selection that begins at page.
func (s selection) from(page int) selection {
	var out selection
	for _, sp := range s {
		if sp.last >= page {
			out = append(out, span{max(sp.first, page), sp.last})
		}
	}
	return out
}

// String writes the selection in the form that parsePages reads.
func (s selection) String() string {
	parts := make([]string, len(s))
	for i, sp := range s {
		parts[i] = strconv.Itoa(sp.first)
		if sp.last > sp.first {
			parts[i] += "-" + strconv.Itoa(sp.last)
		}
	}
	return strings.Join(parts, ",")
}
