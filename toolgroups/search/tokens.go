package search

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// minSplit is the number of characters that a word must have before its digits, or after them, for
// them to be split off: ride2 is split into ride and 2, but s3, mp3 and ec2 are single words.
const minSplit = 4

// maxText bounds the part of a text that is indexed, in bytes.
const maxText = 16 << 10

// maxEnding bounds an English ending after an apostrophe ('s, 'll), in characters.
const maxEnding = 2

// word is a word of a text as written.
type word struct {
	text string // lower case, without accents
	// parts are the parts of the word: GitHub has the parts git and hub.
	parts []string
}

// foldAccents normalizes a text to NFKC and removes accents from Latin letters. It drops all after maxText.
func foldAccents(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !unicode.Is(unicode.Latin, r) {
			return r
		}
		base, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r)))
		return base
	}, norm.NFKC.String(strings.ToValidUTF8(text, " ")))
}

// splitWords splits a text into words.
func splitWords(text string) (out []word) {
	for run := range runs(text) {
		out = append(out, wordsOfRun(run)...)
	}
	return out
}

// runs yields the runs of letters and digits, split between scripts with and without spaces. A run
// after an apostrophe begins with the apostrophe.
func runs(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		text := foldAccents(text)
		from, first := -1, rune(0) // start and first rune of the run
		for i, r := range text {
			ends, begins := true, isWordRune(r)
			switch {
			case begins && from >= 0:
				ends = isScriptWithoutSpaces(r) != isScriptWithoutSpaces(first)
				begins = ends
			case isApostrophe(r) && from >= 0:
				// wordsOfRun drops a short ending: adriel's becomes adriel, don't becomes don.
				next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
				begins = isWordRune(next)
			}
			if ends && from >= 0 {
				if !yield(text[from:i]) {
					return
				}
				from = -1
			}
			if begins {
				from, first = i, r
			}
		}
		if from >= 0 {
			yield(text[from:])
		}
	}
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

func isApostrophe(r rune) bool { return r == '\'' || r == '’' }

// isScriptWithoutSpaces reports whether a rune belongs to a script without spaces between words, or to
// Hangul, whose words take endings.
func isScriptWithoutSpaces(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// wordsOfRun returns the words of a run: in a script without spaces, its pairs of characters.
func wordsOfRun(run string) []word {
	text := []rune(run)
	if isApostrophe(text[0]) {
		if text = text[1:]; len(text) <= maxEnding {
			return nil
		}
	}
	if !isScriptWithoutSpaces(text[0]) {
		return []word{{text: strings.ToLower(string(text)), parts: splitCase(text)}}
	}
	var out []word
	for i := range max(1, len(text)-1) {
		pair := string(text[i:min(i+2, len(text))])
		out = append(out, word{text: pair, parts: []string{pair}})
	}
	return out
}

// splitCase splits a word where its case changes, and digits off the end of long words.
func splitCase(run []rune) []string {
	var parts []string
	from := 0
	cut := func(to int) {
		if to > from {
			parts = append(parts, strings.ToLower(string(run[from:to])))
		}
		from = to
	}
	for i := 1; i < len(run); i++ {
		prev, r := run[i-1], run[i]
		switch {
		case unicode.IsUpper(r) && unicode.IsLower(prev):
			cut(i)
		case unicode.IsLower(r) && unicode.IsUpper(prev) && i-1 > from && i-2 >= 0 && unicode.IsUpper(run[i-2]):
			cut(i - 1)
		case unicode.IsDigit(r) && unicode.IsLetter(prev) && i-from >= minSplit,
			unicode.IsLetter(r) && unicode.IsDigit(prev) && len(run)-i >= minSplit:
			cut(i)
		}
	}
	cut(len(run))
	return parts
}
