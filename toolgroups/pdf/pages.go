package pdf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// errPageSelection is returned for a malformed selection, or one with pages that do not exist.
var errPageSelection = errors.New("pdf: invalid page selection")

// selection is a set of pages in order, the first page being 1.
type selection []int

// parsePages parses a set of pages such as "3", "1-5" or "1,3,5-7" for a document with count
// pages. A blank text selects all pages.
func parsePages(text string, count int) (selection, error) {
	if strings.TrimSpace(text) == "" {
		text = fmt.Sprintf("1-%d", count)
	}
	starts := make([]int, count+2) // per page, the ranges that start there minus those that end before it
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := parsePage(from, count)
		last := first
		if err == nil && ranged {
			last, err = parsePage(to, count)
		}
		if err != nil || last < first {
			return nil, errPageSelection
		}
		starts[first]++
		starts[last+1]--
	}
	var pages selection
	for page, runs := 1, 0; page <= count; page++ {
		if runs += starts[page]; runs > 0 {
			pages = append(pages, page)
		}
	}
	return pages, nil
}

// parsePage parses the number of a page. It accepts digits only, not a sign.
func parsePage(text string, count int) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, errPageSelection
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > count {
		return 0, errPageSelection
	}
	return n, nil
}

// String formats the selection as parsePages reads it.
func (s selection) String() string {
	var parts []string
	for i := 0; i < len(s); i++ {
		first := i
		for i+1 < len(s) && s[i+1] == s[i]+1 {
			i++
		}
		part := strconv.Itoa(s[first])
		if i > first {
			part += "-" + strconv.Itoa(s[i])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}
