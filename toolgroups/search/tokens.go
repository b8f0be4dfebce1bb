package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// minSplit is how many letters must stand before a digit for the two to be taken
// apart: ride2 is ride, but s3, mp3 and ec2 are words.
const minSplit = 4

// maxText bounds how much of a text is read, in bytes.
const maxText = 16 << 10

// maxEnding is how long an English ending behind an apostrophe is: 's, 'll.
const maxEnding = 2

// word is a word of a text as it was written.
type word struct {
	text string // lower case, without accents
	// parts are what the word is made of: GitHub is git and hub.
	parts []string
}

// fold brings a text to composed form and takes the accents off Latin letters.
func fold(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 || !unicode.Is(unicode.Latin, r) {
			return r
		}
		base, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r)))
		return base
	}, norm.NFKC.String(strings.ToValidUTF8(text, " ")))
}

// scanner cuts a text into words.
type scanner struct {
	out []word
	run []rune
}

// words cuts a text into words.
func words(text string) []word {
	var s scanner
	runes := []rune(fold(text))
	for i, r := range runes {
		switch {
		case inWord(r):
			if len(s.run) > 0 && dense(r) != dense(s.run[0]) {
				s.flush()
			}
			s.run = append(s.run, r)
		case apostrophe(r) && len(s.run) > 0 && i+1 < len(runes) && inWord(runes[i+1]):
			// Adriel's is adriel, don't is don: what follows is no word.
			s.flush()
			s.run = append(s.run, r)
		default:
			s.flush()
		}
	}
	s.flush()
	return s.out
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

func apostrophe(r rune) bool { return r == '\'' || r == '’' }

// dense reports whether a character belongs to a script without spaces.
func dense(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// flush ends the word that is being read.
func (s *scanner) flush() {
	run := s.run
	s.run = nil
	if len(run) == 0 {
		return
	}
	if apostrophe(run[0]) {
		if run = run[1:]; len(run) <= maxEnding {
			return
		}
	}
	if dense(run[0]) {
		s.pairs(run)
		return
	}
	s.out = append(s.out, word{text: strings.ToLower(string(run)), parts: split(run)})
}

// pairs cuts a run without spaces.
func (s *scanner) pairs(run []rune) {
	for i := range max(1, len(run)-1) {
		pair := string(run[i:min(i+2, len(run))])
		s.out = append(s.out, word{text: pair, parts: []string{pair}})
	}
}

// split takes a word apart where its case changes, and digits off the end of long words.
func split(run []rune) []string {
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
