package memory

import (
	_ "embed"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"oneclaw/toolgroups/search"
)

//go:embed translations.txt
var translations string

const (
	// longestPhrase is the number of words of the longest phrase in the dictionary.
	longestPhrase = 4
	// maxEnding bounds the ending that an inflected word may have, and minPart is the least length of the
	// parts of a compound, in bytes.
	maxEnding = 3
	minPart   = 4
)

// dictionary has English words by words of other languages, as foldedWords writes them.
type dictionary struct {
	english map[string]string
	search.StemReader
}

func newDictionary() *dictionary {
	d := &dictionary{map[string]string{}, search.NewStemReader()}
	for line := range strings.Lines(translations) {
		columns := strings.Split(line, "|")
		for _, column := range columns[1:] {
			for phrase := range strings.FieldsSeq(column) {
				key := strings.Join(foldedWords(phrase), " ")
				if _, known := d.english[key]; !known && key != "" {
					d.english[key] = strings.Trim(columns[0], " -")
				}
			}
		}
	}
	return d
}

// foldedWords returns the words of a text in lower case and without accents.
func foldedWords(text string) []string {
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFD.String(text))
	return strings.FieldsFunc(strings.NewReplacer("ß", "ss", "œ", "oe").Replace(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// translate returns a text word by word in English, if it has more words of the dictionary than English
// function words. What the dictionary lacks stays.
func (d *dictionary) translate(text string) string {
	words := foldedWords(text)
	english := len(words) - len(d.Stems(strings.Join(words, " ")))
	var out []string
	known := 0
	for i := 0; i < len(words); i++ {
		meant := words[i]
		for n := min(longestPhrase, len(words)-i); n > 0; n-- {
			found, ok := d.english[strings.Join(words[i:i+n], " ")]
			if !ok && n == 1 {
				found, ok = d.part(words[i])
			}
			if ok {
				meant = found
				known++
				i += n - 1
				break
			}
		}
		out = append(out, meant)
	}
	if known <= english {
		return text
	}
	return strings.Join(out, " ")
}

// part translates an inflected word, or the parts of a compound that are in the dictionary.
func (d *dictionary) part(word string) (english string, ok bool) {
	for n := 1; n <= maxEnding && len(word)-n >= minPart; n++ {
		if english, ok = d.english[word[:len(word)-n]]; ok {
			return english, true
		}
	}
	for i := minPart; i <= len(word)-minPart; i++ {
		last, ok := d.english[word[i:]]
		if !ok {
			continue
		}
		for _, joint := range []string{"", "s", "n", "en", "es", "e"} {
			stem := strings.TrimSuffix(word[:i], joint)
			if first, ok := d.english[stem]; ok {
				return first + " " + last, true
			}
		}
		return last, true
	}
	return "", false
}
