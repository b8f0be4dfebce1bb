package readable

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"oneclaw/internal/wording"
)

const (
	// maxDeclaration is how far into a text its own word about its encoding is looked for.
	maxDeclaration = 64 << 10
	// escaped is an encoding whose bytes are all of ASCII, and so look like UTF-8.
	escaped = "iso-2022-jp"
)

// declaration is where a page or a feed names its encoding.
var declaration = regexp.MustCompile(`(?i)<(?:\?xml|meta)\b[^>]*?\b(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)`)

// Decode makes UTF-8 of a text. Its content type is believed, then its bytes, then what it
// says of itself: of that, and of the bytes, the library looks at the first 1,024 only.
func Decode(data []byte, contentType string) string {
	e, name, certain := charset.DetermineEncoding(data, contentType)
	whole := wording.Whole(data)
	if utf8.Valid(whole) && (name == "utf-8" || !certain && name != escaped) {
		return strings.TrimPrefix(string(whole), "\uFEFF")
	}
	if m := declaration.FindSubmatch(data[:min(len(data), maxDeclaration)]); m != nil && !certain {
		if said, _ := charset.Lookup(string(m[1])); said != nil {
			e = said
		}
	}
	decoded, err := e.NewDecoder().Bytes(data)
	if err != nil {
		decoded = data
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(decoded), "\uFFFD"), "\uFEFF")
}
