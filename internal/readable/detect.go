package readable

import (
	"slices"
	"strings"
	"unicode"

	grams "github.com/gogs/chardet"
	"github.com/wlynxg/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

const (
	// maxSample bounds the text from which an encoding is detected, in bytes.
	maxSample = 64 << 10
	// minCertain is the certainty from which the detector of scripts is believed, 0 to 1.
	minCertain = 0.4
	// minLead is by how much another Latin encoding has to be likelier than windows-1252, of 100.
	minLead = 3
)

// latinEncodings are the encodings for languages in Latin letters that are told apart: the most common first.
func latinEncodings() []latinEncoding {
	return []latinEncoding{
		{"windows-1252", charmap.Windows1252, []string{"windows-1252", "ISO-8859-1"}},
		{"windows-1250", charmap.Windows1250, []string{"windows-1250"}},
		{"ISO-8859-2", charmap.ISO8859_2, []string{"ISO-8859-2"}},
		{"windows-1254", charmap.Windows1254, []string{"windows-1254", "ISO-8859-9"}},
	}
}

// latinEncoding is an encoding, with the names that the detector has for it or for a part of it.
type latinEncoding struct {
	name  string
	table *charmap.Charmap
	known []string
}

// DetectEncoding guesses the encoding of a text that is not UTF-8 and declares none: the script and the order of
// its letters tell it. It returns windows-1252 if nothing speaks for another.
func DetectEncoding(text []byte) (name string, e encoding.Encoding) {
	text = text[:min(len(text), maxSample)]
	// One detector knows scripts and double bytes, the other languages in Latin letters.
	if d := chardet.Detect(text); d.Confidence >= minCertain && !isLatin(d.Encoding) {
		if e, name := charset.Lookup(d.Encoding); e != nil {
			return name, e
		}
	}
	all, err := grams.NewTextDetector().DetectAll(text)
	if err == nil && len(all) > 0 && !isLatin(all[0].Charset) && all[0].Confidence > 50 {
		if e, name := charset.Lookup(all[0].Charset); e != nil {
			return name, e
		}
	}
	best, bestScore := latinEncoding{}, 0
	for i, l := range latinEncodings() {
		likely := 0
		for _, d := range all {
			if slices.Contains(l.known, d.Charset) {
				likely = max(likely, d.Confidence)
			}
		}
		score := likely - 100*signsInWords(l.table, text)
		if i == 0 || score >= bestScore+minLead {
			best, bestScore = l, score
		}
	}
	return best.name, best.table
}

// isLatin reports whether a name is that of an encoding for Latin letters.
func isLatin(name string) bool {
	switch strings.ToLower(name) {
	case "", "ascii", "utf-8", "windows-1250", "windows-1252", "windows-1254", "iso-8859-1", "iso-8859-2", "iso-8859-9", "iso-8859-15", "macroman":
		return true
	}
	return false
}

// signsInWords counts the signs within and at the end of words, such as the third letter of "ka¿dy": where there
// are any, the text has another encoding.
func signsInWords(table *charmap.Charmap, text []byte) (n int) {
	for i := 1; i < len(text); i++ {
		r := table.DecodeByte(text[i])
		usual := r < 0x80 || unicode.IsLetter(r) || unicode.In(r, unicode.Pi, unicode.Pf, unicode.Pd, unicode.Z) || strings.ContainsRune(usualSigns, r)
		if !usual && unicode.IsLetter(table.DecodeByte(text[i-1])) {
			n++
		}
	}
	return n
}

// usualSigns are signs that stand behind a word.
const usualSigns = "€°™®²…·´"
