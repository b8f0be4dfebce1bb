package readable

import (
	"net/url"
	"strings"
)

// ConvertPage is what the child does with a page, in this process: a fuzzer has no time to
// start one for each.
func ConvertPage(page string, at *url.URL) (string, error) {
	return convertPage(strings.NewReader(page), at)
}
