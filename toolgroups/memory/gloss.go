package memory

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

//go:embed translations.txt
var translations string

// languages is the number of languages that are translated. longestPhrase bounds the words of a phrase.
const (
	languages     = 5
	longestPhrase = 3
)

// Bounds of words that are not in the dictionary as they are written, in bytes.
const (
	minStem   = 4 // the beginning that an inflected word shares with a word in the dictionary
	maxEnding = 3 // the rest of either word
	minPart   = 4 // a part of a compound
)

var wordPattern = regexp.MustCompile(`[\p{L}\p{M}]+`)

// dictionary translates words of a language into English.
type dictionary struct {
	english  map[string]string // by the word without accents; "" if the word says nothing
	function map[string]bool   // function words, which tell the language
	sorted   []string          // the keys of english
	// hasCompounds is true if the language joins words, as German does.
	hasCompounds bool
}

// glossary translates texts into English, word by word.
type glossary struct {
	dictionaries [languages]dictionary
	isEnglish    func(word string) (known, function bool)
}

func newGlossary(isEnglish func(string) (known, function bool)) *glossary {
	g := &glossary{isEnglish: isEnglish}
	for i := range g.dictionaries {
		g.dictionaries[i] = dictionary{english: map[string]string{}, function: map[string]bool{}, hasCompounds: i == 0}
	}
	for line := range strings.Lines(translations) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		head, isFunction := strings.CutPrefix(line, "= ")
		columns := strings.Split(head, "|")
		english := strings.TrimSpace(columns[0])
		if english == "-" {
			english = ""
		}
		for i, column := range columns[1:] {
			d := &g.dictionaries[i]
			for word := range strings.FieldsSeq(fold(column)) {
				if _, known := d.english[word]; !known && word != "-" {
					d.english[word] = english
					d.sorted = append(d.sorted, word)
				}
				d.function[word] = d.function[word] || isFunction
			}
		}
	}
	for i := range g.dictionaries {
		slices.Sort(g.dictionaries[i].sorted)
	}
	return g
}

// joinedLetters replaces letters that stand for two, and apostrophes, as the dictionary writes them.
var joinedLetters = strings.NewReplacer("ß", "ss", "œ", "oe", "’", "-", "'", "-")

// fold returns a text in lower case and without accents.
func fold(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFD.String(text))
	return joinedLetters.Replace(text)
}

// translate returns a text with its known words translated into English, if the text seems to be in one of
// the languages. Any other text stays unchanged.
func (g *glossary) translate(text string) string {
	places := wordPattern.FindAllStringIndex(text, maxGlossed)
	var words []string
	for _, at := range places {
		words = append(words, fold(text[at[0]:at[1]]))
	}
	d := g.languageOf(words)
	if d == nil {
		return text
	}
	var out strings.Builder
	end := 0
	for i := 0; i < len(places); i++ {
		out.WriteString(text[end:places[i][0]])
		english, n := d.phrase(words[i:])
		if n == 0 {
			english, n = text[places[i][0]:places[i][1]], 1
			if parts := d.compound(words[i]); d.hasCompounds && parts != "" {
				english = parts
			}
		}
		out.WriteString(english)
		i += n - 1
		end = places[i][1]
	}
	return out.String() + text[end:]
}

// maxGlossed bounds the words of a text that are translated.
const maxGlossed = 400

// languageOf returns the dictionary of the language of the words, or nil if that is English or not known.
func (g *glossary) languageOf(words []string) *dictionary {
	best, found := 0, (*dictionary)(nil)
	for _, w := range words {
		if known, function := g.isEnglish(w); function {
			best += 2
		} else if known {
			best++
		}
	}
	for i := range g.dictionaries {
		d, score := &g.dictionaries[i], 0
		for _, w := range words {
			if d.function[w] {
				score += 2
			} else if _, known := d.english[w]; known {
				score++
			}
		}
		if score > best {
			best, found = score, d
		}
	}
	return found
}

// phrase translates as many words at the beginning as the dictionary has in one phrase. It returns their
// number, 0 if it knows not even the first word.
func (d *dictionary) phrase(words []string) (english string, n int) {
	for n = min(longestPhrase, len(words)); n > 0; n-- {
		if english, ok := d.english[strings.Join(words[:n], "-")]; ok {
			return english, n
		}
	}
	if english, ok := d.inflected(words[0]); ok {
		return english, 1
	}
	return "", 0
}

// inflected translates a word that differs from one in the dictionary in its ending.
func (d *dictionary) inflected(word string) (english string, ok bool) {
	at, _ := slices.BinarySearch(d.sorted, word)
	longest := minStem - 1
	for _, known := range d.sorted[max(0, at-1):min(len(d.sorted), at+1)] {
		n := 0
		for n < min(len(known), len(word)) && known[n] == word[n] {
			n++
		}
		if n > longest && max(len(known), len(word))-n <= maxEnding && !d.function[known] {
			longest, english, ok = n, d.english[known], true
		}
	}
	return english, ok
}

// compound translates the parts of a word, or at least the last one. It returns "" if it knows none.
func (d *dictionary) compound(word string) (english string) {
	for i := len(word) - minPart; i >= minPart; i-- {
		first, ok := d.part(word[:i])
		if !ok {
			continue
		}
		if last, n := d.phrase([]string{word[i:]}); n == 1 {
			return first + " " + last
		}
		if last := d.compound(word[i:]); last != "" {
			return first + " " + last
		}
	}
	for i := minPart; i <= len(word)-minPart-1; i++ {
		if last, ok := d.english[word[i:]]; ok && last != "" && !d.function[word[i:]] {
			return last
		}
	}
	return ""
}

// part translates the first part of a compound, which may have an ending.
func (d *dictionary) part(word string) (english string, ok bool) {
	for _, ending := range []string{"", "s", "n", "en", "es", "e"} {
		stem, has := strings.CutSuffix(word, ending)
		if english, ok = d.english[stem]; has && ok && english != "" && !d.function[stem] {
			return english, true
		}
		if english, ok = d.english[stem+"e"]; has && ok && english != "" && !d.function[stem+"e"] {
			return english, true
		}
	}
	return "", false
}
