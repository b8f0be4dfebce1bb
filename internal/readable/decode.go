package readable

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"

	"oneclaw/internal/wording"
)

const (
	// maxDeclaration bounds the search for an encoding declared in a text, in bytes.
	maxDeclaration = 64 << 10
	// asciiEncoding is an encoding of only ASCII bytes, which looks like UTF-8.
	asciiEncoding = "iso-2022-jp"
)

// declaredEncoding matches the declared encoding of a page or a feed.
var declaredEncoding = regexp.MustCompile(`(?i)<(?:\?xml|meta)\b[^>]*?\b(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)`)

// Decode converts a text to UTF-8. The encoding is that of the content type, else UTF-8 if the bytes are
// valid, else the declared one, even beyond the first 1,024 bytes, in which the library looks for it, else the
// one that [DetectEncoding] guesses.
func Decode(data []byte, contentType string) string {
	e, name, certain := charset.DetermineEncoding(data, contentType)
	whole := wording.TrimPartialRune(data)
	if utf8.Valid(whole) && (name == "utf-8" || !certain && name != asciiEncoding) {
		return strings.TrimPrefix(string(whole), "\uFEFF")
	}
	if !certain && name != asciiEncoding {
		declared := declaredEncoding.FindSubmatch(data[:min(len(data), maxDeclaration)])
		var said encoding.Encoding
		if declared != nil {
			said, _ = charset.Lookup(string(declared[1]))
		}
		if e = said; said == nil {
			_, e = DetectEncoding(aroundLetters(data))
		}
	}
	decoded, err := e.NewDecoder().Bytes(data)
	if err != nil {
		decoded = data
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(decoded), "\uFFFD"), "\uFEFF")
}

// aroundLetters returns data from a little before its first byte beyond ASCII on.
func aroundLetters(data []byte) []byte {
	for i, c := range data {
		if c >= 0x80 {
			return data[max(i-maxBefore, 0):]
		}
	}
	return data
}

// maxBefore is how much of a text before its first byte beyond ASCII is looked at, in bytes.
const maxBefore = 1 << 10
