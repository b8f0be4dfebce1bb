package wording

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Split cuts a text after n characters.
func Split(text string, n int) (head, tail string) {
	for i := range text {
		if n <= 0 {
			return text[:i], text[i:]
		}
		n--
	}
	return text, ""
}

// Clip returns a text of at most n characters. A longer one ends in "…" instead.
func Clip(text string, n int) string {
	if _, tail := Split(text, n); tail == "" {
		return text
	}
	head, _ := Split(text, n-1)
	return strings.TrimRightFunc(head, unicode.IsSpace) + "…"
}

// Whole drops an incomplete character at the end of cut data.
func Whole(data []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if tail := data[len(data)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return data[:len(data)-n]
			}
			break
		}
	}
	return data
}
