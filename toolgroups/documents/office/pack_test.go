package office

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// A small file can unpack to any size: what comes of all files of an archive is counted.
func TestWhatIsUnpackedIsBounded(t *testing.T) {
	left := int64(10)
	for _, tc := range []struct {
		size int
		ok   bool
	}{{6, true}, {4, true}, {1, false}} {
		_, err := io.ReadAll(&limitedUnpacker{from: strings.NewReader(strings.Repeat("x", tc.size)), left: &left})
		if refusal := Refusal(""); (err == nil) != tc.ok || err != nil && (!errors.As(err, &refusal) || !strings.Contains(refusal.Error(), "limit of 256 MiB")) {
			t.Errorf("%d bytes: %v", tc.size, err)
		}
	}
}
