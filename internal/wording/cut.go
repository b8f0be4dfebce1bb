package wording

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// SplitAt splits a text after n characters.
func SplitAt(text string, n int) (head, tail string) {
	for i := range text {
		if n <= 0 {
			return text[:i], text[i:]
		}
		n--
	}
	return text, ""
}

// Clip shortens a text to at most n characters. A shortened text ends in "…".
func Clip(text string, n int) string {
	if _, tail := SplitAt(text, n); tail == "" {
		return text
	}
	head, _ := SplitAt(text, n-1)
	return strings.TrimRightFunc(head, unicode.IsSpace) + "…"
}

// TrimPartialRune removes an incomplete UTF-8 character from the end of data.
func TrimPartialRune(data []byte) []byte {
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
